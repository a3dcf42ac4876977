"""Carrying out a compaction of one bucket."""
