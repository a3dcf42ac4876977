"""Data files of every format that is read: the port, and the formats beside Parquet."""
