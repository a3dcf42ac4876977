"""Writes that are ready to run: INSERTs, sets of them, and CREATE TABLE … AS; as statements and as objects of Python's."""
