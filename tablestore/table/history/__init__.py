"""Tags, branches, rollback, partitions that expire, other bucket numbers."""
