"""``tablestore mt``: materialized tables."""
