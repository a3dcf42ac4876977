"""Help for tests, ours and the connectors': stores that fail, clocks that stand still. The product imports none."""
