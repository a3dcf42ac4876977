"""A topic into a table."""
