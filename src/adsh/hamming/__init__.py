"""Binary codes: packing, distances, and exact search by Hamming distance. Imports no torch."""
