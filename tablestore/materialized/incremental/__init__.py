"""Refreshes a materialized table from the changes of its sources, and checks that it equals its query."""
