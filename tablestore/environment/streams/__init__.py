"""Runs queries over streams of managed tables in this process, batch by batch, on whatever engine computes a batch."""
