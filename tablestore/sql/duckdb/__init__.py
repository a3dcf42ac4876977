"""Queries in DuckDB's dialect: the text that gives the rows which Spark gives."""
