"""Whole runs: train, evaluate, encode, make features, and what each leaves in its folder."""
