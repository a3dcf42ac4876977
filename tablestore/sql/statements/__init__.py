"""Describes statements as frozen values."""
