"""File stores: where tables live, behind one small protocol."""
