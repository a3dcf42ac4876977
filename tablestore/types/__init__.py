"""Values that describe tables: types, schemas, row kinds, predicates, expressions, and conversions from Arrow and SQL."""
