"""Writes to one table: appends, upserts, overwrites, and changes and deletes by condition."""
