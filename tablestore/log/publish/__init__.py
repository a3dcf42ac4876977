"""Publishes snapshots to the log (the outbox): what snapshots have and the log lacks is sent, in order, once."""
