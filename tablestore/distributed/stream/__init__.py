"""Streams a table to an engine that plans in one process and reads in others, in batches that it can repeat."""
