"""Managed tables as FLIP-188 has them: the factory that makes them, and what of them is not physical."""
