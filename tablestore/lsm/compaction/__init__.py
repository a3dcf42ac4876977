"""Compaction picking: live files in, compaction tasks out."""
