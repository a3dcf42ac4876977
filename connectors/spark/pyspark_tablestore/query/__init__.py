"""What the query engine needs beside relations: errors, tables with a connector, a session of its own."""
