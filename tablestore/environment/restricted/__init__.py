"""Restricts a session for SQL text from others: which statements it runs, what their queries may name, and how much they may
take."""
