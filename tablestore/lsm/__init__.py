"""The LSM tree of one bucket in memory: sorting, folding, merging, compaction picking. No files, no clock, no network."""
