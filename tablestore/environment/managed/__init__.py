"""Makes managed tables as FLIP-188 has them: the factory, and the columns that are not physical."""
