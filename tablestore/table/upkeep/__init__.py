"""Upkeep after a commit: compaction, expiry, and reports of what of it is left undone."""
