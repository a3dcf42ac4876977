"""Runs statements that read and change rows."""
