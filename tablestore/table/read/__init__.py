"""Reads one table: scans, look-ups by key, and the changes between two snapshots."""
