"""Blue and green: another version of a materialized table is built beside it, compared, and put in its place in one step."""
