"""Evolves materialized tables blue/green: another version is built beside the table, compared, and put in its place in one step."""
