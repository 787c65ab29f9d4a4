"""Search by image: what a query is, what is found, and how items get into an index."""
