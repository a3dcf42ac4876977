"""Checks texts of SQL that tables keep, or that others send, before an engine runs them."""
