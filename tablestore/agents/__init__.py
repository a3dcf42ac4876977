"""Offers a warehouse to agents: tools that look at tables and query them, within limits, over the Model Context Protocol."""
