"""Scans and bounded changes of one table."""
