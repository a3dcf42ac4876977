"""Names of databases and tables, and where they lie."""
