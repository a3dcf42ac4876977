"""Shows things on the command line."""
