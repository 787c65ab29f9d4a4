"""What must not change while the code is moved about: digests of small runs, JSON answers and public names."""
