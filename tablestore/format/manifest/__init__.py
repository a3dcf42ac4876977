"""Manifests and their lists, and the Avro files that they are."""
