"""What does an error of DuckDB mean to whoever wrote the query?

    the query is wrong                 InvalidInputError, kind query, with the place where it names one
    what DuckDB lacks                  UnsupportedError, kind engine, with the engine that may have it
    interrupted by ``cancel``          UnsupportedError, kind cancelled
    memory, disk, the engine itself    StorageError
"""

import re

from tablestore.errors import InvalidInputError, StorageError, TablestoreError, UnsupportedError
from tablestore.sql.source import Span, marked

# A stream raises an OSError with the text alone, so the text decides, which begins with the class of the error.
_CLASS = re.compile(r"^([A-Za-z][A-Za-z ]+) Error: ")
_STORAGE = {"IO", "INTERNAL", "FATAL", "HTTP", "Out of Memory"}
_NAMED = re.compile(
    r"(?:column|field|near|[Ff]unction named|[Ff]unction with name|[Mm]acro with name|[Tt]able with name) [\"']?([\w$]+)"
)
_CAST = re.compile(r"Could not convert string '(.+)' to")
# Names that a made query has and the statement does not.
_MADE = re.compile(r"\nCandidate \w+: [^\n]*_(?:row_position|data_file|tablestore_)[^\n]*| when casting from source column _c\d+")
_LACKING = re.compile(r"Function with name \S+ does not exist|not implemented|not supported|unimplemented", re.IGNORECASE)


def translated(message: str, text: str) -> TablestoreError:
    """The error to raise in place of DuckDB's, by its message; ``text`` is the query as it was written."""
    whole = message.split("\n\nLINE ")[0].strip()
    found = _CLASS.match(whole)
    named, message = (found[1], whole[found.end() :]) if found else ("", whole)
    if named == "INTERRUPT":
        return cancellation()
    if named == "Out of Memory":
        return StorageError(f"DuckDB has no memory left for the query: {message}; raise memory_limit, or set temp_directory")
    if named in _STORAGE:
        return StorageError(f"DuckDB failed while it ran the query: {message}")
    message = _MADE.sub("", message)
    where = _place(message, text)
    if named == "Not implemented" or _LACKING.search(message):
        return UnsupportedError(
            f"DuckDB cannot run the query: {message}; write it in another way, or run it on the engine spark{where}", kind="engine"
        )
    return InvalidInputError(f"DuckDB refuses the query: {message}{where}", kind="query")


def cancellation() -> UnsupportedError:
    """What is raised where a cancelled statement runs."""
    return UnsupportedError("the statement was cancelled; nothing of it was published", kind="cancelled")


def _place(message: str, text: str) -> str:
    """The place of what the message names, on a line of its own; empty where that is not clear."""
    if (found := _NAMED.search(message) or _CAST.search(message)) is None:
        return ""
    places = [place.start() for place in re.finditer(rf"(?<![\w$]){re.escape(found[1])}(?![\w$])", text, re.IGNORECASE)]
    return f"\n{marked(text, Span(places[0], places[0] + len(found[1])))}" if len(places) == 1 else ""
