"""System tables: what a table is made of, as tables."""
