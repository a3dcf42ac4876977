"""Encodes rows as the JSON that the log carries, and decodes it."""
