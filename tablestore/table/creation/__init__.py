"""Creates tables together with their first rows."""
