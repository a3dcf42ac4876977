"""Distributed work: reads, writes, changes and compactions cut into tasks for other processes."""
