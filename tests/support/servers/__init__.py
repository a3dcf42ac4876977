"""Servers that tests start, each on a free port of this machine."""
