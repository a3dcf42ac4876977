"""Translates what Spark says about a query to an error of tablestore's, with the place in the user's own text.

Spark has trees of errors: those of its Python API (classic and Connect), those of py4j, and the text of a trace from a Python
worker in which an error of tablestore's own may stand. One place makes typed errors of them all.

Spark counts places in the text that it was given, in which names of views stand for tables. They are counted back through the
edits of the query.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from pyspark_tablestore.tasks import split_kind
from tablestore import errors
from tablestore.environment.engine import BoundQuery
from tablestore.errors import FormatError, InvalidInputError, StorageError, TablestoreError, UnsupportedError
from tablestore.redaction import without_secrets
from tablestore.sql.query.functions import FUNCTION_PREFIX
from tablestore.sql.source import Span, marked, unedited
from tablestore.store.scan.splitreader import data_file_gone

# The last line of a worker's trace: the module path, the class, the message (which may go on in further lines up to the JVM's).
_OURS = re.compile(
    r"^(?:tablestore[\w.]*\.)(\w+): (.*?)(?=^\s+at |^\n|^JVM stacktrace|^\s*SQLSTATE: |\Z)", re.MULTILINE | re.DOTALL
)
_NAMES_AN_ERROR = re.compile(r"^(?:: )?([\w.$]+(?:Error|Exception)\b.*)$", re.MULTILINE)
# The first of the causes that Spark has a name for.
_CAUSE = re.compile(r"^Caused by: [\w.$]+: (\[[A-Z_.]+\].*)$", re.MULTILINE)
# An exception of the JVM that pyspark does not know.
_THROWN = re.compile(r"An error occurred while calling \S+\n: [\w.$]+: \[([A-Z0-9_.]+)\] ")
_UNSUPPORTED = ("UNSUPPORTED_FEATURE", "NOT_SUPPORTED", "UNSUPPORTED_")
_NO_SOURCE = ("DATA_SOURCE_NOT_FOUND", "KAFKA_DATA_SOURCE_NOT_ENABLED")
_DAMAGED = ("FAILED_READ_FILE", "CANNOT_READ_FILE_FOOTER")
# A missing file whose path has a bucket in it: other files are somebody else's.
_GONE = re.compile(
    r"\[(?:FAILED_READ_FILE\.FILE_NOT_EXIST\] Encountered error while reading file|PATH_NOT_FOUND\] Path does not exist:) "
    r"\"?file:(?://)?(/[^\n\"]*/bucket-\w+/[\w-]+(?:\.\w+)*)"
)
_STREAMING = (
    "Queries with streaming sources must be executed",
    "Streaming query is not allowed",
    "can not be called on streaming Dataset",
)
_CANCELLED = ("cancelled job", "JOB_CANCELLED", "OPERATION_CANCELED", "was cancelled", "cancelled as part of")
_TOO_LARGE = re.compile(r"Total size of serialized results of \d+ tasks? \(([^)]*)\) is bigger than (\S+) \(([^)]*)\)")
_MOST = 2000

# pyspark makes these names for the DataFrames in a text.
_VIEW = re.compile(r"`?_pyspark_(?:connect_temp_view_)?[0-9a-f]{32}`?")
_QUOTED = re.compile(r"`((?:[^`]|``)+)`")
_NO_CAST = re.compile(r'cannot be cast to "([^"]+)"')
_FUNCTION = re.compile(r"function (\S+) raised ")
_MADE_NAME = re.compile(rf"{FUNCTION_PREFIX}\d+_")
# Columns that a made query has and the statement does not, among those that Spark suggests.
_MADE_COLUMN = re.compile(r"(?:, )?(?:`[^`]*`\.)*`_(?:row_position|data_file|tablestore_\w+)`")
_VIEW_LENGTH = len("_pyspark_") + 32
_PLACE = re.compile(r"\(line (\d+), pos (\d+)\)")
# Parts of messages for Spark's own developers, and about its way to look names up.
_ASIDE = re.compile(
    r"^\[[A-Z_.0-9]+\] |\s*SQLSTATE: \w{5}|\s*\(line \d+, pos \d+\)|;\s*line \d+ pos \d+|\nSearch path: .*", re.DOTALL
)


@contextmanager
def query_errors(what: str, query: BoundQuery | None = None) -> Iterator[None]:
    """Raises what Spark raises inside as tablestore's. ``what`` is done: "the query", "writing to t"; ``query`` was sent."""
    try:
        yield
    except TablestoreError:
        raise
    except pa.ArrowInvalid as error:
        # PySpark 4.3 takes the parts of a VARIANT for NOT NULL where the VARIANT itself is NULL.
        raise UnsupportedError(
            f"{what}: Spark cannot hand over its rows ({error}). A VARIANT that is NULL has no form outside Spark: CAST(… AS "
            "STRING) or to_json(…) gives a text",
            kind="unsupported-type",
        ) from error
    except Exception as error:
        if not _is_sparks(error):
            raise
        # A trace shows the causes too: one that holds the address of a database with its password is left out.
        raise ours(error, what, query) from (error if without_secrets(text := str(error)) == text else None)


def _is_sparks(error: Exception) -> bool:
    return any(kind.__module__.partition(".")[0] in ("pyspark", "py4j", "grpc") for kind in type(error).__mro__)


def ours(error: Exception, what: str, query: BoundQuery | None = None) -> TablestoreError:
    """The error of tablestore's that says what Spark's says."""
    text = str(error)
    if (worker_error := error_of_worker(text)) is not None:
        return _of_function(worker_error, query)
    condition = _condition(error)
    if any(sign in text for sign in _CANCELLED):
        return UnsupportedError(f"{what} was cancelled; what it wrote is not in the table", kind="cancelled")
    if any(sign in text for sign in _STREAMING):
        return UnsupportedError(
            f"{what}: it reads a stream, which does not end. SET 'execution.runtime-mode' = 'streaming' and INSERT the stream INTO "
            "a managed table, or CREATE TABLE … AS it, and query that table",
            kind="streaming",
        )
    if (large := _TOO_LARGE.search(text)) is not None:
        return UnsupportedError(
            f"{what}: Spark gives this process at most {large[3]} of a result at a time ({large[2]}), found {large[1]}. Start the "
            "session with a larger one, or SELECT /*+ REPARTITION(200) */ where the rows go into a topic, one partition at a time",
            kind="limit",
        )
    if (missing_file := _GONE.search(text)) is not None:
        return data_file_gone(unquote(missing_file[1]))
    message = f"{what}: {_said(text, query)}{_where(error, text, query)}"
    if condition.startswith("PARSE_") or type(error).__name__ == "ParseException":
        return InvalidInputError(message, kind="sql-syntax")
    if "Failed to find data source: avro" in text:
        message = f"{what}: Spark reads and writes Avro with a package of its own, spark-avro: start the session with it " + (
            "(spark.jars.packages = org.apache.spark:spark-avro_2.13:<version of Spark>), or run the statement on the engine duckdb"
        )
        return UnsupportedError(message, kind="no-connector")
    if condition in _NO_SOURCE:
        message = f"{what}: Spark has no data source of this name; install its package, or check the name"
        return UnsupportedError(message, kind="no-connector")
    if condition.startswith(_DAMAGED):
        return FormatError(message, kind="spark")
    if condition.startswith(_UNSUPPORTED):
        return UnsupportedError(message, kind="engine")
    if condition or type(error).__name__ in ("AnalysisException", "NumberFormatException", "IllegalArgumentException"):
        return InvalidInputError(message, kind="query")
    reason = _CAUSE.search(text) or _NAMES_AN_ERROR.search(text)
    return StorageError(f"{what}: Spark gave the job up ({(reason[1] if reason else text)[:_MOST]})", kind="spark")


def error_of_worker(text: str) -> TablestoreError | None:
    """The error of ours that a Python worker's trace ends with."""
    for name, message in reversed(_OURS.findall(text)):
        kind = getattr(errors, name, None) or _subclass(TablestoreError, name)
        if isinstance(kind, type) and issubclass(kind, TablestoreError):
            message_text, its_kind = split_kind(message)
            return kind(message_text.strip(), kind=its_kind)
    return None


def _subclass(tree: type[TablestoreError], name: str) -> type[TablestoreError] | None:
    for kind in tree.__subclasses__():
        if kind.__name__ == name:
            return kind
        if (subclass := _subclass(kind, name)) is not None:
            return subclass
    return None


def _condition(error: Exception) -> str:
    """Spark's name of the error, such as ``TABLE_OR_VIEW_NOT_FOUND``; empty if it has none."""
    get = getattr(error, "getCondition", None)
    if get is not None:
        return get() or ""
    match = _THROWN.match(str(error))
    return match[1] if match else ""


def _said(text: str, query: BoundQuery | None) -> str:
    """The message without plans and traces behind it, and without names that pyspark made."""
    for mark in ("\n\nJVM stacktrace", ";\n", "\n== SQL", "\n\tat "):
        text = text.partition(mark)[0]
    text = _MADE_COLUMN.sub("", _MADE_NAME.sub("", text)).replace("following? [, ", "following? [")
    text = re.sub(r"^An error occurred while calling \S+\n: [\w.$]+: ", "", text)
    names = {relation.name for relation in query.relations} if query is not None else set()
    return _VIEW.sub(names.pop() if len(names) == 1 else "a table", _ASIDE.sub("", text.strip())).strip()[:_MOST]


def _where(error: Exception, text: str, query: BoundQuery | None) -> str:
    """The place in the user's text, on lines of its own, or the column of the rows to write; empty where Spark names none."""
    if query is None or (span := _span(error, text, query) or _only_cast(text, query)) is None:
        return ""
    if (written := query.written(span)) is not None:
        return f"\n{marked(*written)}"
    # A cast of a column to the type that the table has.
    column = _QUOTED.search(query.text[span.start : span.end])
    return "" if column is None else f" (column {column[1].replace('``', '`')!r})"


def _only_cast(text: str, query: BoundQuery) -> Span | None:
    """The place of the query's only cast to the type that a value does not go into: Spark does not always say where it is."""
    if (refused := _NO_CAST.search(text)) is None:
        return None
    casts = list(re.finditer(rf"\bCAST\([^()]* AS {re.escape(refused[1])}\)", query.text, re.IGNORECASE))
    return Span(*casts[0].span()) if len(casts) == 1 else None


def _of_function(error: TablestoreError, query: BoundQuery | None) -> TablestoreError:
    """An error of a worker, with the place of the function that raised it."""
    if query is None or (named := _FUNCTION.match(error.message)) is None:
        return error
    text = query.text if query.statement is None else query.statement
    calls = list(re.finditer(rf"(?<!\w){re.escape(named[1])}(?=`?\s*\()", text, re.IGNORECASE))
    where = f"\n{marked(text, Span(*calls[0].span()))}" if len(calls) == 1 else ""
    return type(error)(f"{error.message}{where}", kind="query")


def _span(error: Exception, text: str, query: BoundQuery) -> Span | None:
    view = _VIEW.search(text)
    length = len(view[0].strip("`")) if view else _VIEW_LENGTH
    sent = query.edited(lambda number: "_" * length)
    if (place := _PLACE.search(text)) is not None:
        lines = sent.splitlines(keepends=True)[: int(place[1]) - 1]
        return user_span(query, Span(at := sum(map(len, lines)) + int(place[2]), at + 1), length)
    for context in _contexts(error):
        start, stop = context.startIndex(), context.stopIndex() + 1
        # A context may also be that of another text, such as a view of Spark's own.
        if 0 <= start < stop <= len(sent) and len(context.fragment()) == stop - start:
            return user_span(query, Span(start, stop), length)
    return None


def _contexts(error: Any) -> list[Any]:
    get = getattr(error, "getQueryContext", None)
    contexts = (get() if get is not None else None) or []
    return [context for context in contexts if getattr(context.contextType(), "name", "") == "SQL" and not context.objectType()]


def user_span(query: BoundQuery, sent: Span, length: int) -> Span:
    """A place of the text that Spark was given, where each relation's name has ``length`` characters, in the user's text. Pure."""
    return unedited(query.edits, sent, lambda _: length, len(query.text))
