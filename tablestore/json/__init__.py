"""Encodes rows as JSON text, and decodes JSON fast and exactly: for logs, topics, and files."""
