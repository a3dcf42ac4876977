"""Statements that look around: SHOW, DESCRIBE."""
