"""The outbox: what snapshots have and the log lacks is sent, in order, once."""
