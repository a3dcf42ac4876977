"""Spark's functions that DuckDB runs by a rule each, a module a family of them."""
