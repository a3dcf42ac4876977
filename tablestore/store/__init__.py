"""The table store: many buckets under one snapshot, scanned, read, written, compacted, committed and expired."""
