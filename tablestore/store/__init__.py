"""Many buckets under one snapshot: scanning, reading, writing, committing."""
