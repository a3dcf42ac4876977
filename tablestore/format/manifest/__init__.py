"""Manifests, manifest lists and index manifests, and the Avro files that they are."""
