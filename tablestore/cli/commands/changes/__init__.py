"""Changes on their way out of a table and into one: ``tablestore consume`` and ``ingest``."""
