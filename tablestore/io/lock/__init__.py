"""Publishing where the store has no conditional write: under a lock that all writers share."""
