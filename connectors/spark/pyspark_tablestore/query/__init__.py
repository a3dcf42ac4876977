"""Gives the query engine what it needs beside relations: errors, tables with a connector, a session of its own."""
