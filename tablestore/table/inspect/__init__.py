"""What a table looks like inside, and whether it is whole."""
