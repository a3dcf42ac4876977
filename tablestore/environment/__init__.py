"""Holds sessions (names and what they mean, settings, temporary objects) and executes statements."""
