"""Index files: deletion vectors and hash indexes."""
