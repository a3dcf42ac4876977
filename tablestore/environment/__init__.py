"""A session: names and what they mean, settings, temporary objects, and the execution of statements."""
