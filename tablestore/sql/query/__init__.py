"""Queries: which tables they read and where, what of them they use, and their text for other engines."""
