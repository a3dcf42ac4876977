"""Inspects tables: what they look like inside, and whether they are whole."""
