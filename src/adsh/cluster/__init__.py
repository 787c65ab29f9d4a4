"""Collections too large for one machine: partitions, coded by Ray, into Parquet or an index."""
