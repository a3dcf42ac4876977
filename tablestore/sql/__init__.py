"""SQL text and what it says: statements as values, queries with the tables that they read. Pure: no engine, no catalog, no file."""
