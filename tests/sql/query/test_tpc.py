"""The queries of TPC-H and TPC-DS: all are understood, and what is said of their tables is enough to answer them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.peers import PeerUnavailable, find_interpreter
from tablestore.sql.binding.sqltypes import Type, type_of
from tablestore.sql.duckdb.transpile import to_duckdb
from tablestore.sql.query.plan import QueryPlan, Replacement, plan_query
from tablestore.sql.query.querypruning import Use
from tablestore.sql.query.tablereferences import Reference, find_references
from tablestore.sql.source import apply_edits
from tablestore.types.datatypes import Field
from tablestore.types.filter.predicatetext import to_sql
from tablestore.types.typestring import parse_type
from tests.conftest import IN_CI
from tests.support.sql import tpc

pytestmark = pytest.mark.interop
TYPES = {"VARCHAR": "STRING", "INTEGER": "INT", "TIME": "STRING"}


@pytest.fixture(scope="module")
def python() -> Path:
    try:
        return find_interpreter("tpc")
    except PeerUnavailable as error:
        if IN_CI:
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def answer(python: Path) -> dict[str, object]:
    return tpc.ask(python)


def planned(answer: dict[str, object]) -> Iterator[tuple[str, str, tuple[Reference, ...], QueryPlan]]:
    fields: dict[str, list[Field]] = {}
    for benchmark, table, column, kind in answer["columns"]:  # type: ignore[attr-defined]
        known = fields.setdefault(f"{benchmark} {table}", [])
        known.append(Field(id=len(known), name=column, type=parse_type(TYPES.get(kind, kind))))
    for name, text in answer["queries"].items():  # type: ignore[attr-defined]
        references = find_references(text)
        tables = [f"{name.split()[0]} {found.path.parts[0].lower()}" for found in references]
        made = [
            Replacement(path=found.path.parts, fields=tuple(fields[table])) for found, table in zip(references, tables, strict=True)
        ]
        yield name, text, references, plan_query(text, references, made)


@pytest.mark.deep
def test_all_queries_are_planned_to_their_tables(answer: dict[str, dict[str, list[str]]]) -> None:
    plans = list(planned(answer))
    assert len(plans) == 22 + 99
    assert sum(tables is None for tables in answer["tables"].values()) < 10
    for name, _, references, plan in plans:
        tables = answer["tables"][name]
        assert tables is None or {found.path.parts[0].lower() for found in references} == set(tables), name
        # None of them reads a table whole but for those that it names every column of.
        whole = {found.path.parts[0] for found, use in zip(references, plan.uses, strict=True) if use.columns is None}
        assert whole <= {"supplier", "customer_demographics", "inventory", "income_band"}, name


@pytest.mark.slow
def test_the_pruned_tables_give_the_same_answers(python: Path, answer: dict[str, object]) -> None:
    compare = {}
    for name, text, references, plan in planned(answer):
        tables = [derived_table(found, use) for found, use in zip(references, plan.uses, strict=True)]
        compare[name] = {"pruned": apply_edits(text, plan.edits, tables.__getitem__, lambda part: part.replace("`", '"'))}
    assert not tpc.ask(python, scale=0.01, compare=compare)["wrong"]


@pytest.mark.deep
def test_duckdb_takes_all_queries_in_sparks_dialect(answer: dict[str, dict[str, str]]) -> None:
    tables: dict[str, dict[str, list[tuple[str, Type]]]] = {}
    for benchmark, table, column, kind in answer["columns"]:
        columns = tables.setdefault(benchmark, {}).setdefault(table, [])
        columns.append((column, type_of(parse_type(TYPES.get(kind, kind)))))
    for name, text in answer["queries"].items():
        assert to_duckdb(text, tables[name.split()[0]])


def derived_table(reference: Reference, use: Use) -> str:
    """What is read of a table, as DuckDB's text; a table without columns keeps its number of rows."""
    columns = "*" if use.columns is None else ", ".join(use.columns) or "1"
    condition = "" if use.filter is None else f" WHERE {to_sql(use.filter).replace('`', chr(34))}"
    return f"(SELECT {columns} FROM {reference.path.parts[0]}{condition})"
