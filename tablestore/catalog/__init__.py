"""Catalogs: the names of databases and tables, and where they lie."""
