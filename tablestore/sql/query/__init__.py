"""Finds the tables that queries read, the columns and rows of them that they use, and edits their text for engines."""
