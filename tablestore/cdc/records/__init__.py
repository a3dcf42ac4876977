"""Records of a topic as changes of rows. Pure: bytes in, Arrow out."""
