"""Tables that come into being together with their first rows."""
