"""The oldest dependencies that work."""
