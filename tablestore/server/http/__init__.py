"""The safe defaults of the HTTP service: limits, allow-lists, headers, as middleware that knows nothing of tables."""
