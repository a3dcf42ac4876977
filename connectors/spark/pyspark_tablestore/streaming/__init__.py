"""Streams into tables: a sink, and batches of a query."""
