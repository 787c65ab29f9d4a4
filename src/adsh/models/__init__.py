"""Models: the interface they share, ADSH itself, and how models are saved and loaded."""
