"""Runs compactions of one bucket."""
