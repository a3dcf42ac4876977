"""Locks that all writers of a table share, for stores without a conditional write."""
