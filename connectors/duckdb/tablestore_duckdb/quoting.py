"""How names and texts are written in DuckDB's SQL."""


def identifier(name: str) -> str:
    """A name by exactly its characters."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text."""
    return "'" + text.replace("'", "''") + "'"
