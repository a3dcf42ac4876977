"""Which types the columns and expressions of a query have in Spark."""
