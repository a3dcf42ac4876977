"""A package, so that its helpers are imported by one name in every process."""
