"""The write buffer: turns written rows into sorted runs."""
