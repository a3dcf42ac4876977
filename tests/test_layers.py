"""The order of the layers, read from the source: an import points left, and never in a circle.

    base -> types -> format -> lsm || io -> store -> log -> catalog -> table -> distributed -> cli, demo, connectors

Every import counts, also one inside a function or behind TYPE_CHECKING: who needs the name of a thing to
the right knows too much. Only circles are looked for among the imports that run.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

# The place of a package or top-level module in the order. Equal places: neither imports the other.
PLACES = {
    "bounds": 0,
    "errors": 0,
    "clock": 0,
    "ids": 0,
    "lazy": 0,
    "names": 0,
    "options": 0,
    "progress": 0,
    "types": 1,
    "format": 2,
    "lsm": 3,
    "io": 3,
    "store": 4,
    "log": 5,
    "catalog": 6,
    "table": 7,
    "distributed": 8,
    "cli": 9,
    "demo": 9,
    "testing": 10,
    "__main__": 10,
}
CONNECTOR_PLACE = 9
BASE = {"bounds", "errors", "clock", "ids", "lazy", "names", "options", "progress"}

# What the engine must not know. Exceptions: the demo's Spark step is a Spark program, and whoever starts a broker asks it
# whether it is up.
FOREIGN = {"pyspark", "confluent_kafka", "connectors", "pyspark_tablestore", "tablestore_kafka", "tests", "benchmarks"}
FOREIGN_ALLOWED = {("tablestore.demo.spark", "pyspark"), ("tablestore.testing.kafka.broker", "confluent_kafka")}


@dataclass(frozen=True)
class Import:
    """``where`` imports ``target``; both are dotted module names."""

    where: str
    target: str
    file: Path
    line: int
    runs: bool  # false behind TYPE_CHECKING

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.where} imports {self.target}"


def test_every_import_points_left(project: Path) -> None:
    wrong = [found for found in imports_of_ours(project) if points_right(found)]
    assert not wrong, "these imports point right:\n" + "\n".join(map(str, wrong))


def test_the_engine_knows_neither_spark_nor_kafka_nor_a_connector(project: Path) -> None:
    wrong = [
        found
        for found in imports_of_ours(project)
        if root_of(found.where) == "tablestore"
        and root_of(found.target) in FOREIGN
        and (found.where, root_of(found.target)) not in FOREIGN_ALLOWED
    ]
    assert not wrong, "the engine imports a client or a connector:\n" + "\n".join(map(str, wrong))


def test_no_module_imports_itself_through_others(project: Path) -> None:
    runs: dict[str, dict[str, Import]] = {}
    for found in imports_of_ours(project):
        # The package's own `__init__` hands out names from everywhere, when they are asked for.
        if found.runs and found.where != "tablestore" and found.target != "tablestore":
            runs.setdefault(found.where, {}).setdefault(found.target, found)
    circle = first_circle({where: list(targets) for where, targets in runs.items()})
    lines = [str(runs[here][there]) for here, there in pairwise(circle)]
    assert not circle, "these imports go in a circle:\n" + "\n".join(lines)


def test_every_package_and_module_has_a_place(project: Path) -> None:
    placed = set(PLACES)
    found = {path.stem for path in (project / "tablestore").iterdir() if path.suffix == ".py" or any(path.glob("**/*.py"))}
    unplaced = sorted(found - placed - {"__init__", "__main__"})
    assert not unplaced, f"give these a place in the order of the layers: {', '.join(unplaced)}"


@pytest.mark.parametrize(
    ("where", "target", "right"),
    [
        ("tablestore.format.snapshot", "tablestore.errors", False),
        ("tablestore.format.snapshot", "tablestore.io.local", True),
        ("tablestore.lsm.merge.sortedmerge", "tablestore.io.local", True),
        ("tablestore.io.local", "tablestore.lsm.merge.sortedmerge", True),
        ("tablestore.store.commit.committer", "tablestore.lsm.merge.sortedmerge", False),
        ("tablestore.table.table", "tablestore.testing.files", True),
        ("tablestore.testing.files", "tablestore.table.table", False),
        ("tablestore.ids", "tablestore.clock", False),
        ("tablestore.store.commit.committer", "tablestore", True),
        ("pyspark_tablestore.reader", "tablestore.distributed.tasks", False),
        ("pyspark_tablestore.reader", "tablestore.cli.main", True),
    ],
)
def test_the_rule_tells_left_from_right(where: str, target: str, right: bool) -> None:
    assert points_right(Import(where, target, Path("x.py"), 1, True)) is right


def test_a_circle_is_found() -> None:
    assert first_circle({"a": ["b"], "b": ["c"], "c": ["b"]}) == ["b", "c", "b"]
    assert first_circle({"a": ["b", "c"], "b": ["c"], "c": []}) == []


def points_right(found: Import) -> bool:
    where, target = found.where.split("."), found.target.split(".")
    if target[0] != "tablestore" or found.where == "tablestore":
        return False
    if target == ["tablestore"]:
        # The public names are for users: inside, import from the module that defines a thing.
        return where[1:2] not in (["testing"], ["cli"], ["demo"]) and where[0] == "tablestore"
    there = target[1]
    if where[0] != "tablestore":
        return PLACES.get(there, CONNECTOR_PLACE) >= CONNECTOR_PLACE
    here = where[1]
    if here == there or {here, there} <= BASE:
        return False
    return PLACES.get(there, 99) >= PLACES.get(here, -1)


def imports_of_ours(project: Path) -> list[Import]:
    roots = [project, *sorted((project / "connectors").iterdir())]
    modules: dict[str, Path] = {}
    for root in roots:
        packages = [root / "tablestore"] if root == project else [path for path in root.iterdir() if path.is_dir()]
        for file in sorted(file for package in packages for file in package.rglob("*.py")):
            parts = file.relative_to(root).with_suffix("").parts
            modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    assert modules, "there is no source to read"
    return [
        found
        for name, file in modules.items()
        for found in imports_in(ast.parse(file.read_text(), str(file)), name, file, project, set(modules))
    ]


def imports_in(tree: ast.Module, where: str, file: Path, project: Path, modules: set[str]) -> Iterator[Import]:
    shown = file.relative_to(project)
    package = where if file.name == "__init__.py" else where.rpartition(".")[0]
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(tree):
        targets: list[str] = []
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            # `from package import module` is an import of the module, `from module import name` of the module.
            targets = [f"{base}.{alias.name}" if f"{base}.{alias.name}" in modules else base for alias in node.names]
        for target in dict.fromkeys(targets):
            yield Import(where, target, shown, node.lineno, id(node) not in typing_only)  # type: ignore[attr-defined]


def first_circle(graph: dict[str, list[str]]) -> list[str]:
    """The modules of one circle in order, the first one again at the end; empty when there is none."""
    done: set[str] = set()

    def walk(node: str, path: list[str]) -> list[str]:
        if node in path:
            return [*path[path.index(node) :], node]
        if node in done:
            return []
        for target in graph.get(node, []):
            if circle := walk(target, [*path, node]):
                return circle
        done.add(node)
        return []

    for start in graph:
        if circle := walk(start, []):
            return circle
    return []


def root_of(module: str) -> str:
    return module.partition(".")[0]
