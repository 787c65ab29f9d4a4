"""Search by image, and put items into an index."""
