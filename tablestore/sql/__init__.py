"""Reads SQL text into statements as values, and finds the tables that queries read. Pure: no engine, no catalog, no file."""
