"""Translates an error of DuckDB to one of tablestore's for whoever wrote the query.

the query is wrong                 InvalidInputError, kind query, with the place where it names one
what DuckDB lacks                  UnsupportedError, kind engine, with the engine that may have it
a file outside of its folders      UnsupportedError, kind engine, with the way to read it
interrupted by ``cancel``          UnsupportedError, kind cancelled
memory, disk, the engine itself    StorageError
a data file that has expired       NotFoundError, kind data-file-gone
"""

import re
from collections.abc import Callable, Sequence

from tablestore.errors import InvalidInputError, StorageError, TablestoreError, UnsupportedError
from tablestore.names import did_you_mean
from tablestore.sql.duckdb.calls import RAISED, REFUSED
from tablestore.sql.query.functions import FUNCTION_PREFIX
from tablestore.sql.source import Span, marked
from tablestore.store.scan.splitreader import data_file_gone

# A stream raises an OSError with the text alone, so the text decides, which begins with the class of the error.
_CLASS = re.compile(r"^([A-Za-z][A-Za-z ]+) Error: ")
_STORAGE = {"IO", "INTERNAL", "FATAL", "HTTP", "Out of Memory"}
# A missing file whose path has a bucket in it: other files are somebody else's.
_GONE = re.compile(r"""^(?:No files found that match the pattern|Cannot open file) "(/.*/bucket-\w+/[^"/]+)"(?:$|: No such file)""")
# The forms in which messages name their subject, the surest first: a name, the function or operator of a call, a value, a clause.
_NAMED = tuple(
    map(
        re.compile,
        (
            r"(?:[Cc]olumn|[Ff]ield|[Kk]ey|[Tt]able)(?: named| name)? [\"']([\w$]+)[\"']",
            r"(?:source column|near|[Ff]unction(?: named| with name)?|(?:[Mm]acro|[Tt]able) with name) [\"'`]?([\w$]+)",
            r"misplaced near `([^\w`])`",
            r"argument types '(\w+|[^\w\s(]+)\(",
            r"Could not (?:convert string|parse string|cast value) [\"']?(.+?)[\"']? (?:to|according)\b",
            r"(?:out of range|field format): \"(.+?)\"",
            r"^(SELECT|WHERE|GROUP|HAVING|QUALIFY|ORDER|LIMIT)\b",
        ),
    )
)
# The error that a function of the user's (``Function.failed``) or an Arrow function of ours raised.
_OF_A_FUNCTION = re.compile(
    r"Python exception occurred while executing the UDF: (InvalidInputError|UnsupportedError): (.*?)(?:\n\nAt:\n.*)?$", re.DOTALL
)
# The message of DuckDB's for a value that is not of the type that a function says.
_NOT_OF_ITS_TYPE = re.compile(
    r"^(?:Python Conversion Failure: |(?=Unable to transform python |Failed to cast value: Unimplemented type ))(.*)", re.DOTALL
)
# The end of an error of the user's expression that tablestore looks at (``calls.in_own_text``).
_IN_TEXT = re.compile(r" in `(.+)`$", re.DOTALL)
# The error of such an expression where DuckDB has no `error` (``calls.as_partition``).
_OF_A_CAST = re.compile(rf"^Could not convert string '{RAISED}(.*)' to BOOL$", re.DOTALL)
_ALIAS = re.compile(r'^Alias "+(.+?)"+ referenced - but the expression has side effects')
_NEAR = re.compile(r": something is missing or misplaced near `(.+)`$")
_HAS_PLACE = re.compile(r"^line \d+, column \d+:$", re.MULTILINE)
# The most functions that are named of those that DuckDB has instead.
_MOST_CANDIDATES = 3
# A call of a function of the user's with arguments that it does not take, on any engine.
_WRONG_ARGUMENTS = re.compile(rf"argument types '\"?{FUNCTION_PREFIX}")
# Names that a made query has and the statement does not.
_MADE = re.compile(r"\nCandidate \w+: [^\n]*_(?:row_position|data_file|tablestore_)[^\n]*| when casting from source column _c\d+")
# DuckDB names none where the column has a table before it, and else the nearest of those that the query reads.
_NO_COLUMN = re.compile(r'does not have a column named "([^"]+)"|Referenced column "([^"]+)" not found')
_CANDIDATES = re.compile(r"\nCandidate bindings: [^\n]*")
_LACKING = re.compile(
    r"Function with name \S+ does not exist|not implemented|not supported|unimplemented"
    # Spark may take other types of arguments than DuckDB does.
    r"|No function matches the given name|Could not choose a best candidate function|specifier \"\w+\" not recognized"
    # Spark's product has fewer digits, a float no end, and a shift drops bits.
    r"|^Overflow in multiplication of DECIMAL|out of range for the destination type FLOAT|left-shift negative"
    r"|Overflow in left shift",
    re.IGNORECASE | re.DOTALL,
)


def translated(message: str, text: str, columns: Sequence[str] = (), readable: Callable[[str], str] = str) -> TablestoreError:
    """The error to raise in place of DuckDB's, by its message; ``text`` is the query as it was written, ``columns`` are those that
    its tables have, ``readable`` gives a message the user's names."""
    calls_own_function = _WRONG_ARGUMENTS.search(message) is not None
    whole = readable(message).split("\n\nLINE ")[0].strip()
    match = _CLASS.match(whole)
    named, message = (match[1], whole[match.end() :]) if match else ("", whole)
    if named == "INTERRUPT":
        return cancellation()
    if named == "Out of Memory":
        way_out = "raise memory_limit, or set temp_directory"
        return StorageError(f"DuckDB has no memory left for the query: {message}; {way_out}", kind="out-of-memory")
    if (gone := _GONE.match(message)) is not None:
        return data_file_gone(gone[1])
    if named == "Permission" and "disabled by configuration" in message:
        return UnsupportedError(
            f"DuckDB reads and writes files in the folders of tables alone: {message}; declare the file as a table with "
            "'connector' = 'filesystem', or make the environment over a connection of your own: "
            "engine=tablestore_duckdb.open_engine(connection)",
            kind="engine",
        )
    if named in _STORAGE:
        return StorageError(f"DuckDB failed while it ran the query: {message}")
    message = _shortened(_MADE.sub("", _OF_A_CAST.sub(r"\1", message)))
    if (alias := _ALIAS.match(message)) is not None:
        message = f"the alias `{alias[1]}` cannot be used here; write its expression, or name it in a query below"
    if (lacking := _NO_COLUMN.search(message)) is not None and (nearest := did_you_mean(lacking[1] or lacking[2], columns)):
        message = _CANDIDATES.sub("", message).rstrip("!") + nearest
    if (raised := _OF_A_FUNCTION.search(message)) is not None:
        if raised[1] == "UnsupportedError":
            return UnsupportedError(f"{raised[2]}{_place(raised[2], text)}", kind="engine")
        return InvalidInputError(f"{raised[2]}{_place(raised[2], text)}", kind="query")
    if (raised := _NOT_OF_ITS_TYPE.match(message)) is not None:
        return InvalidInputError(
            f"a function of Python's gave a value that is not of the type that it was registered with: {raised[1]}", kind="query"
        )
    where = _place(message, text)
    message = message.replace("Values list ", "Table ")
    if message.startswith(REFUSED):
        return UnsupportedError(f"{message}{where}", kind="engine")
    if named == "Not implemented" or (_LACKING.search(message) and not calls_own_function):
        return UnsupportedError(
            f"DuckDB cannot run the query: {message}; write it in another way, or run it on the engine spark{where}", kind="engine"
        )
    return InvalidInputError(f"DuckDB refuses the query: {message}{where}", kind="query")


def cancellation() -> UnsupportedError:
    """The error that is raised where a cancelled statement runs."""
    return UnsupportedError("the statement was cancelled; nothing of it was published", kind="cancelled")


def marked_at(error: TablestoreError, place: tuple[str, Span] | None, text: str) -> None:
    """Adds a place to an error; None: it is none of the user's ``text``, and what the error says is near to it may be neither."""
    if place is not None:
        error.message += f"\n{marked(*place)}"
    elif (near := _NEAR.search(error.message)) is not None and near[1] not in text:
        error.message = error.message[: near.start()]
    error.args = (error.message,)


def placed(error: TablestoreError, text: str) -> TablestoreError:
    """The same error, with the place of what it names in the query as it was written, if it has none yet."""
    if not _HAS_PLACE.search(error.message):
        error.message += _place(error.message, text)
        error.args = (error.message,)
    return error


def _place(message: str, text: str) -> str:
    """The place of what the message is about, on a line of its own; empty where that is not clear."""
    if (match := _IN_TEXT.search(message)) is not None:
        return _place_of(match[1], text)
    for named in _NAMED:
        if (match := named.search(message)) is None:
            continue
        if place := _place_of(match[1], text):
            return place
    return ""


def _place_of(named: str, text: str) -> str:
    """The only place where a word or an expression stands, on a line of its own; its blanks may be others."""
    pattern = r"\s+".join(map(re.escape, named.split()))
    pattern = r"(?<![\w$])" * named[:1].isalnum() + pattern + r"(?![\w$])" * named[-1:].isalnum()
    places = list(re.finditer(pattern, text, re.IGNORECASE))
    return f"\n{marked(text, Span(*places[0].span()))}" if len(places) == 1 else ""


def _shortened(message: str) -> str:
    """A message with few of the functions that it offers instead."""
    head, offered, tail = message.partition("Candidate functions:\n")
    lines = tail.split("\n")
    more = len(lines) - _MOST_CANDIDATES
    return message if more <= 0 else f"{head}{offered}{chr(10).join(lines[:_MOST_CANDIDATES])}\n\tand {more} more"
