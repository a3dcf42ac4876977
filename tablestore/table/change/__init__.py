"""UPDATE and MERGE from Python: what SQL's statements do, computed with Arrow in this process."""
