"""Which change of a query's rows follows from the changes of its sources? Pure: a query and the shapes of tables in, SQL out."""
