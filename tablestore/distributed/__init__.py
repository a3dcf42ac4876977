"""Reads, writes and compactions cut into tasks for other processes."""
