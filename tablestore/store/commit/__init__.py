"""Commits: the commit loop, its conflict checks and outcomes, and schema alterations."""
