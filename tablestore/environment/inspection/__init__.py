"""Runs statements that look around: SHOW, DESCRIBE, EXPLAIN."""
