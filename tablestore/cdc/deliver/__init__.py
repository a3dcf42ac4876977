"""The changes of a table out, to another table or to files, each once."""
