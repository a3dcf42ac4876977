"""Measures how fresh materialized tables are: the figures, and their text for a collector."""
