"""How fresh are materialized tables? The figures, and their text for a collector."""
