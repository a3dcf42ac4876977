"""A folder of SQL files that declares materialized tables: what it holds, what it would change, and changing it."""
