"""Runs procedures of CALL: the Python API of a table, called by name."""
