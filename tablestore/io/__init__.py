"""File stores: local directories, memory, object stores, behind one small protocol, and the locks for publishing."""
