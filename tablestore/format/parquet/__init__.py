"""Data files: Parquet as the table format has it, checked on reading."""
