"""A table now, and every change after it."""
