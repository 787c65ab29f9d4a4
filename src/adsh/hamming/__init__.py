"""Binary codes: packing, and what is counted or found by Hamming distance. No torch here."""
