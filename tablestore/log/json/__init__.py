"""Rows as the JSON that the log carries, both ways."""
