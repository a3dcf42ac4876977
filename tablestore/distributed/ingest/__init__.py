"""Ingests a topic into a table by tasks of an engine."""
