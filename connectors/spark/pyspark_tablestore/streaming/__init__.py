"""Reads and writes tables in Spark's structured streaming: a source, a sink, and batches of a query."""
