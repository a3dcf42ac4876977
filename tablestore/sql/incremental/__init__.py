"""Plans how the rows of a query change with the changes of its sources. Pure: a query and the shapes of tables in, SQL out."""
