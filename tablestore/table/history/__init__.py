"""Table history from a handle: tags, branches, rollback, partitions that expire, other bucket numbers."""
