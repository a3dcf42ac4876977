"""What Spark says about a query, as an error of tablestore's.

Spark has trees of errors: those of its Python API (classic and Connect), those of py4j, and the text of a trace from a Python
worker in which an error of tablestore's own may stand. One place makes typed errors of them all.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from tablestore import errors
from tablestore.errors import InvalidInputError, StorageError, TablestoreError, UnsupportedError

# The last line of a worker's trace: the module path, the class, the message (which may go on in further lines up to the JVM's).
_OURS = re.compile(r"^(?:tablestore[\w.]*\.)(\w+): (.*?)(?=^\s+at |^\n|^JVM stacktrace|\Z)", re.MULTILINE | re.DOTALL)
_NAMES_AN_ERROR = re.compile(r"^(?:: )?([\w.$]+(?:Error|Exception)\b.*)$", re.MULTILINE)
# Of the causes the first that Spark has a name for.
_CAUSE = re.compile(r"^Caused by: [\w.$]+: (\[[A-Z_.]+\].*)$", re.MULTILINE)
_UNSUPPORTED = ("UNSUPPORTED_FEATURE", "NOT_SUPPORTED", "UNSUPPORTED_")
_CANCELLED = ("cancelled job", "JOB_CANCELLED", "OPERATION_CANCELED", "was cancelled", "cancelled as part of")
_MOST = 2000


@contextmanager
def query_errors(what: str) -> Iterator[None]:
    """Raise what Spark raises inside as tablestore's. ``what`` is done: "the query", "writing to t"."""
    try:
        yield
    except TablestoreError:
        raise
    except Exception as error:
        if not _is_sparks(error):
            raise
        raise ours(error, what) from error


def _is_sparks(error: Exception) -> bool:
    return any(kind.__module__.partition(".")[0] in ("pyspark", "py4j", "grpc") for kind in type(error).__mro__)


def ours(error: Exception, what: str) -> TablestoreError:
    """The error of tablestore's that says what Spark's says."""
    text = str(error)
    if (found := _from_worker(text)) is not None:
        return found
    condition = _condition(error)
    message = f"{what}: {_first_part(text)}"
    if any(sign in text for sign in _CANCELLED):
        return UnsupportedError(f"{what} was cancelled; what it wrote is not in the table", kind="cancelled")
    if condition.startswith("PARSE_") or type(error).__name__ == "ParseException":
        return InvalidInputError(message, kind="sql-syntax")
    if condition.startswith(_UNSUPPORTED):
        return UnsupportedError(message, kind="engine")
    if condition or type(error).__name__ in ("AnalysisException", "NumberFormatException", "IllegalArgumentException"):
        return InvalidInputError(message, kind="query")
    reason = _CAUSE.search(text) or _NAMES_AN_ERROR.search(text)
    return StorageError(f"{what}: Spark gave the job up ({(reason[1] if reason else text)[:_MOST]})", kind="spark")


def _from_worker(text: str) -> TablestoreError | None:
    """The error of ours that a Python worker's trace ends with."""
    for name, message in reversed(_OURS.findall(text)):
        kind = getattr(errors, name, None) or _subclass(TablestoreError, name)
        if isinstance(kind, type) and issubclass(kind, TablestoreError):
            return kind(message.strip())
    return None


def _subclass(tree: type[TablestoreError], name: str) -> type[TablestoreError] | None:
    for kind in tree.__subclasses__():
        if kind.__name__ == name:
            return kind
        if (found := _subclass(kind, name)) is not None:
            return found
    return None


def _condition(error: Exception) -> str:
    """Spark's name of the error, such as ``TABLE_OR_VIEW_NOT_FOUND``; empty if it has none."""
    get = getattr(error, "getCondition", None)
    return (get() if get is not None else None) or ""


def _first_part(text: str) -> str:
    """The message without plans and traces behind it."""
    for mark in ("\n\nJVM stacktrace", ";\n'", "\n== SQL", "\n\tat "):
        text = text.partition(mark)[0]
    return text.strip()[:_MOST]
