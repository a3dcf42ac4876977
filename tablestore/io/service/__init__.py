"""The client of a catalog service: one process that publishes snapshots and keeps names for many."""
