"""A topic into a table, by tasks of an engine."""
