"""One bucket in memory: sorting, folding and merging rows. No files, no clock, no network."""
