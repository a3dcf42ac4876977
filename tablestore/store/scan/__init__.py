"""Reading a snapshot: splits, their rows, look-ups by key."""
