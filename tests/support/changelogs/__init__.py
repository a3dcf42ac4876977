"""A change log outside of the file store, and a table whose life over it is drawn by chance."""
