"""Schema evolution: the changes a schema can take, their rules, and the schema that results."""
