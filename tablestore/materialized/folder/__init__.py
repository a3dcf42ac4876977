"""Reads, plans and applies a folder of SQL files that declares materialized tables."""
