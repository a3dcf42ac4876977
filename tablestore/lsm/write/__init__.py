"""The write buffer: rows become one sorted run."""
