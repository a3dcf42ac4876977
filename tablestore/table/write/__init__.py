"""Writers, overwrites and deletes."""
