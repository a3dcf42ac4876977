"""Filters on rows: parsed, bound to columns, used to leave files out."""
