"""Writes rows to data files."""
