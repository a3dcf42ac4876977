"""Finds the types that the columns and expressions of a query have in Spark."""
