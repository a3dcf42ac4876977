"""Follows a table: its rows now, and every change after them."""
