"""Reading what snapshots changed."""
