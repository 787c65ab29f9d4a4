"""Collections too large for one machine: partitions, encoded by Ray, written to Parquet or an index."""
