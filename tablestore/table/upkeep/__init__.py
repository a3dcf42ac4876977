"""What follows a commit: compaction, expiry, and what of it is left undone."""
