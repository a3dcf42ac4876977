"""Ingests a topic into a table."""
