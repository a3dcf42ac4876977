"""Decodes records of a topic into changes of rows. Pure: bytes in, Arrow out."""
