"""Statements that read and change rows."""
