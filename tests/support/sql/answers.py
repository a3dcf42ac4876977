"""Spark's answers to queries about its functions, recorded; and what an engine makes of the same queries.

A file of answers is JSON lines, one query a line: ``function`` and ``query``, and ``types`` with ``rows``, or ``error`` with the
condition that Spark names. An answer without rows differs from run to run, or cannot leave Spark as Arrow data.
``tests/integration/spark/test_functions.py`` writes the files anew where WRITE_SQL_CORPUS is set.
"""

import datetime as dt
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

import tablestore as ts

FOLDER = Path(__file__).parents[2] / "sql" / "corpus"
EXAMPLES = FOLDER / "examples.jsonl"
"""The examples in the documentation of Spark's functions."""
EDGES = FOLDER / "edges.jsonl"
"""Functions of arguments at the edges of their types."""
SCALAR_EDGES = FOLDER / "scalaredges.jsonl"
"""The same of more functions (``scalaredges``): of texts, bytes, addresses, numbers, bits, dates, times, statistics."""
COLLECTIONS = FOLDER / "collections.jsonl"
"""Functions of arrays, maps, rows, JSON and checksums over columns at the edges, generators, and what they are put together to."""
TYPES = FOLDER / "types.jsonl"
"""Random queries (``randomqueries``), whose columns have the types of what their names stand for."""
# Digits of a double that libraries of mathematics agree on.
_CLOSE = 2e-15
# Of moments of a higher order the last digits go by how Spark parts the rows.
_BY_PARTS, _CLOSE_BY_PARTS = ("kurtosis", "skewness"), 1e-14
Rows: TypeAlias = list[list[Any]]


@dataclass(frozen=True)
class Answer:
    """What Spark says to a query. ``error``: its condition; ``rows``: None where they are others in each run."""

    function: str
    query: str
    types: tuple[str, ...] = ()
    rows: Rows | None = None
    error: str | None = None

    def __str__(self) -> str:
        return f"{self.function}: {self.query}"

    @property
    def is_ordered(self) -> bool:
        """Whether the query sorts its result."""
        return "ORDER BY" in self.query.rpartition(")")[2].upper()

    def to_line(self) -> str:
        """The answer as a line of its file."""
        said: dict[str, Any] = {"function": self.function, "query": self.query}
        said |= {"error": self.error} if self.error else {"types": self.types}
        said |= {} if self.rows is None else {"rows": self.rows}
        return json.dumps(said, ensure_ascii=False)


def read_answers(path: Path) -> list[Answer]:
    """The answers of a file, in its order."""
    # Texts have other ends of lines in them.
    lines = path.read_text().removesuffix("\n").split("\n")
    return [Answer(**(said := json.loads(line)) | {"types": tuple(said.get("types", ()))}) for line in lines]


def write_answers(path: Path, answers: Iterable[Answer]) -> None:
    """Write a file of answers anew."""
    path.write_text("".join(f"{answer.to_line()}\n" for answer in answers))


def plain_rows(table: pa.Table) -> Rows:
    """Rows as JSON has them: numbers as they are, moments, decimals and bytes as texts."""
    columns = [[_plain(value) for value in _values(column)] for column in table.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def _values(column: pa.ChunkedArray) -> list[Any]:
    try:
        return list(column.to_pylist())
    except OverflowError:
        # Python has no dates beyond the year 9999: their days since 1970.
        return list(column.cast(pa.int32() if pa.types.is_date32(column.type) else pa.int64()).to_pylist())


def _plain(value: Any) -> Any:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case bytes():
            return value.hex()
        case dict():
            return [_plain(part) for part in value.values()]
        case list() if value and all(isinstance(entry, tuple) for entry in value):
            return sorted(([_plain(part) for part in entry] for entry in value), key=json.dumps)
        case list():
            return [_plain(part) for part in value]
        case Decimal() | dt.date() | dt.time() | dt.timedelta():
            return str(value)
        case _:
            return repr(value)


def type_name(data_type: pa.DataType) -> str:
    """An Arrow type without what says nothing about values: names of elements, nullability."""
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        return f"list<{type_name(data_type.value_type)}>"
    if pa.types.is_map(data_type):
        return f"map<{type_name(data_type.key_type)}, {type_name(data_type.item_type)}>"
    if pa.types.is_struct(data_type):
        fields = (data_type.field(place) for place in range(data_type.num_fields))
        return f"struct<{', '.join(f'{field.name}: {type_name(field.type)}' for field in fields)}>"
    return "time" if pa.types.is_time(data_type) else str(data_type)


def same_rows(expected: Rows, found: Rows, *, ordered: bool, close: float = _CLOSE) -> bool:
    """Whether rows are equal: NaN equals NaN, 0.0 is not -0.0, and the last digits of doubles may be a library's."""
    if not ordered:
        expected, found = (sorted(rows, key=_key) for rows in (expected, found))
    return _same(expected, found, close)


def _key(row: Any) -> str:
    return json.dumps(row, default=str, ensure_ascii=False)


def _same(expected: Any, found: Any, close: float) -> bool:
    if isinstance(expected, list):
        is_list = isinstance(found, list) and len(expected) == len(found)
        return is_list and all(_same(left, right, close) for left, right in zip(expected, found, strict=True))
    if isinstance(expected, float):
        return isinstance(found, float) and (
            (math.isnan(expected) and math.isnan(found))
            or (math.isclose(expected, found, rel_tol=close) and math.copysign(1, expected) == math.copysign(1, found))
        )
    return type(expected) is type(found) and bool(expected == found)


EQUAL, REFUSED = "equal", "refused"


@dataclass(frozen=True)
class Verdict:
    """What an engine makes of a query: ``equal``, ``refused`` (by name), or what is wrong with it."""

    answer: Answer
    outcome: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.outcome}: {self.answer.query}\n    {self.detail}"


def judge(answer: Answer, env: ts.TableEnvironment) -> Verdict:
    """Run a query in an environment and compare."""
    try:
        found = env.execute_sql(answer.query).to_arrow()
    except ts.UnsupportedError as error:
        return Verdict(answer, REFUSED, str(error))
    except ts.TablestoreError as error:
        return Verdict(answer, EQUAL if answer.error else "an error", str(error))
    except Exception as error:
        return Verdict(answer, "raw", f"{type(error).__name__}: {error}")
    types, rows = tuple(type_name(one) for one in found.schema.types), plain_rows(found)
    if answer.error is not None:
        return Verdict(answer, "no error", f"expected {answer.error}, found {rows}")
    expected = answer.rows
    if "collect_set" in answer.query and expected is not None:
        expected, rows = _with_sorted_sets(expected), _with_sorted_sets(rows)
    if "approx_count" in answer.query:
        # How near it comes to the truth is each engine's own.
        expected = None
    close = _CLOSE_BY_PARTS if answer.function in _BY_PARTS else _CLOSE
    if expected is not None and not same_rows(expected, rows, ordered=answer.is_ordered, close=close):
        return Verdict(answer, "other rows", f"expected {answer.rows}, found {rows}")
    if types != answer.types:
        return Verdict(answer, "other types", f"expected {answer.types}, found {types}")
    return Verdict(answer, EQUAL)


def _with_sorted_sets(rows: Rows) -> Rows:
    """The elements of a set come in no order."""
    return [[sorted(value, key=_key) if isinstance(value, list) else value for value in row] for row in rows]


def share_by_function(verdicts: Iterable[Verdict]) -> Iterator[str]:
    """Lines that say how many queries of each function are equal, and of all."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for verdict in verdicts:
        counts[verdict.answer.function][verdict.outcome] += 1
    for function, outcomes in sorted(counts.items()):
        yield f"{function:30} {outcomes[EQUAL]:4} of {outcomes.total():4}"
    total = sum(counts.values(), Counter[str]())
    wholly = sum(outcomes[EQUAL] == outcomes.total() for outcomes in counts.values())
    yield f"{wholly} of {len(counts)} functions equal; {total[EQUAL]} of {total.total()} queries, {total[REFUSED]} refused"


def wrong(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Those that are neither equal nor refused."""
    return [verdict for verdict in verdicts if verdict.outcome not in (EQUAL, REFUSED)]
