"""What type checkers of users see: every package is marked as typed, and what public calls take and give has a public name."""

import inspect
import re
from pathlib import Path
from typing import get_type_hints

import pytest

import tablestore as ts
from tablestore.environment.pipelines.createorreplace import CreateOrReplaceTable
from tablestore.environment.query import Query
from tablestore.environment.statementset import StatementSet

CLASSES = (ts.Catalog, ts.Table, ts.Scan, ts.TableWriter)
PUBLIC = [getattr(ts, name) for name in ts.__all__ if inspect.isclass(getattr(ts, name))]
# Of Python, Arrow and other libraries; the last ones are views of the engine for connectors and tools.
OTHERS = re.compile(
    r"str|int|bool|None|object|Any|Self|float|bytes|datetime|timedelta|Iterator|Iterable|Sequence|Mapping|Generator|Callable|Literal|"
    r"type|tuple|dict|list|T|"
    r"(?:pa|pc|pandas|polars|duckdb|collections|abc|typing)(?:\.\w+)*|pyarrow(?:\.\w+)*|"
    r"TableContext|TableSchema|Field|SplitReader|Plan|Predicate|ChangeLog|CommitMessage|CommitNote|Effect|CreationKind|CreationRecord|VisibleCreation"
)


def test_every_package_is_marked_as_typed(project: Path) -> None:
    packages = [project / "tablestore", *(path for path in (project / "connectors").glob("*/*") if (path / "__init__.py").exists())]
    assert len(packages) == 4
    assert not [str(package) for package in packages if not (package / "py.typed").exists()]


@pytest.mark.parametrize("owner", CLASSES)
def test_what_a_public_call_gives_has_a_public_name(owner: type) -> None:
    unnamed = {}
    for name, member in inspect.getmembers(owner):
        function = member.fget if isinstance(member, property) else member
        if name.startswith("_") or name == "predicate" or not inspect.isfunction(function):
            continue
        given = str(inspect.signature(function).return_annotation).replace("<class ", "").replace(">", "")
        words = {
            word.rpartition(".")[2] if word.startswith("tablestore.") else word for word in re.findall(r"[A-Za-z_][\w.]*", given)
        }
        if found := {word for word in words if word not in ts.__all__ and not OTHERS.fullmatch(word)}:
            unnamed[name] = found
    assert not unnamed


@pytest.mark.parametrize("owner", [*PUBLIC, Query, StatementSet, CreateOrReplaceTable])
def test_a_public_call_takes_its_flags_by_name_only(owner: type) -> None:
    """``insert_into("p1", "x")`` may mean a path of two parts: as a flag, ``"x"`` would replace the rows of ``p1``."""
    by_place = {
        f"{name}({parameter.name})"
        for name, member in inspect.getmembers(owner, inspect.isfunction)
        if not name.startswith("_")
        for parameter in inspect.signature(member).parameters.values()
        if parameter.annotation in (bool, "bool") and parameter.kind is not parameter.KEYWORD_ONLY
    }
    assert not by_place


@pytest.mark.parametrize("name", [held.__name__ for held in PUBLIC])
def test_the_types_of_what_a_class_holds_resolve(name: str) -> None:
    """So that cattrs, pydantic and others take the values apart."""
    held = getattr(ts, name)
    assert get_type_hints(held).keys() >= vars(held).get("__annotations__", {}).keys()


@pytest.mark.parametrize(
    "method", [ts.Table.append, ts.Table.upsert, ts.Table.write_changes, ts.Table.overwrite, ts.TableWriter.write]
)
def test_rows_are_typed_as_what_is_taken(method: object) -> None:
    assert inspect.signature(method).parameters["rows"].annotation in ("Rows", ts.Rows)  # type: ignore[arg-type]
