"""Programs that use the public names of tablestore."""
