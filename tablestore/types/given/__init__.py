"""Columns and types as users give them."""
