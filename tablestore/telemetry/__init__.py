"""Tells others what is done to tables: spans and figures of operations, and the lineage of what is written. Off by default."""
