"""Scans of a snapshot: planning splits, reading their rows, looking rows up by key."""
