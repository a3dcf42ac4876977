"""Reads the row changes of snapshots."""
