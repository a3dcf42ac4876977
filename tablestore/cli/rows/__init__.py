"""Rows in from files, and out to them."""
