"""The commit loop and what it decides."""
