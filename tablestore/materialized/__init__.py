"""Makes materialized tables and keeps them fresh: managed tables whose options carry the query that fills them."""
