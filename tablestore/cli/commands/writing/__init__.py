"""Commands that write rows."""
