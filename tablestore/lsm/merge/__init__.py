"""Merges sorted runs, a window of keys at a time."""
