"""Files of a warehouse as somebody else may write them, and a process in which they are read, swept and refreshed."""
