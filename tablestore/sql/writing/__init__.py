"""Makes of statements that write the queries whose rows they write."""
