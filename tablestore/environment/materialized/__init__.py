"""Materialized tables: managed tables whose options carry the query that fills them, and what keeps them fresh."""
