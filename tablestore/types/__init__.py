"""Values that describe tables: types, schemas, row kinds, predicates, and the way in from Arrow and SQL."""
