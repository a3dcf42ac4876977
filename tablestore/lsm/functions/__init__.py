"""Merge functions: how rows of equal key combine."""
