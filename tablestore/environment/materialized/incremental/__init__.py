"""Refreshing a materialized table from the changes of its sources, and checking that it equals its query."""
