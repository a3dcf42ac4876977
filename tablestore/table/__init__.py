"""Handles for users: catalogs, tables, scans and writers."""
