"""Captures change data: records of topics into tables, changes of tables out to files, topics and other tables."""
