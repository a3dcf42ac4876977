"""Rows that are sent before their snapshot (``log.consistency = eventual``)."""
