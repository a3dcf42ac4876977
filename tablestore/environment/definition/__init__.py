"""Runs statements that make, change and remove tables, databases and catalogs."""
