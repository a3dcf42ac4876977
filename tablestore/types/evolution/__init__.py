"""Changes of a schema: what they are, whether they go, what comes of them."""
