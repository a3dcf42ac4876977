"""User schemas: columns and types as users write them."""
