"""Shows a warehouse to people: pages of its tables, as HTML that a server or a folder of files gives."""
