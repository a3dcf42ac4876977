"""Delivers the changes of a table to another table, to files or to a topic, each once."""
