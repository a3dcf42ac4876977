"""Updates and merges rows from Python, as SQL's UPDATE and MERGE do, computed with Arrow in this process."""
