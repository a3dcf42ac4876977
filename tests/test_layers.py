"""The order of the layers and of the rooms in them, read from the source: an import points left, and never in a circle.

    base -> telemetry -> types -> json -> format -> lsm || io -> store -> log -> catalog -> table -> cdc -> distributed -> sql
    -> environment -> materialized -> tableenvironment -> server || agents -> cli, connectors

Every import counts, also one inside a function, behind TYPE_CHECKING, or by a text ("tablestore.lazy:imported"): who needs the name
of a thing to the right knows too much.

And the names: two modules have one base name only where both are about the same thing, seen from two places.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.syntax import parsed

# The layers from left to right; of those in one step neither imports the other, but for the base.
LAYERS = (
    "bounds brokers errors clock htmltext ids inorder lazy memo names options othernames progress recursion redaction secretnames "
    "timepoint units",
    "telemetry",
    "types",
    "json",
    "format",
    "lsm io",
    "store",
    "log",
    "catalog",
    "table",
    "cdc",
    "distributed",
    "sql",
    "environment",
    "materialized",
    "tableenvironment",
    "server agents",
    "cli",
    "testing __main__",
)
# The rooms of a layer from left to right, and single modules that lie to the right of a room; "*": all its other modules. What is
# in one step may import each other.
ROOMS = {
    "types": ("*", "userschema", "expression", "filter", "evolution"),
    "format": ("*", "manifest", "index", "parquet", "datafiles"),
    "lsm": ("*", "functions", "merge", "write", "compaction"),
    "io": ("*", "lock service", "opening"),
    "store": ("*", "scan", "changes", "write", "history", "commit", "compact"),
    "log": (
        "*",
        "settings",
        "recordlimit connector",
        "publish",
        "follow",
        "early",
        "logcheck alterlog port",
        "filestorelog publishedlog",
        "opening",
    ),
    "table": (
        "*",
        "read",
        "upkeep",
        "write",
        "change",
        "history",
        "inspect",
        "system",
        "table",
        "tablenames",
        "creation",
        "catalog opening",
    ),
    "cdc": ("*", "records", "ingest", "deliver"),
    "sql": ("*", "statements", "parse", "query", "stored", "binding", "writing", "incremental", "duckdb"),
    "distributed": ("*", "ingest stream"),
    "environment": (
        "jobs",
        "*",
        "managed",
        "restricted",
        "session",
        "rows",
        "definition streams",
        "pipelines",
        "procedures",
        "inspection",
        "execution",
        "configuration query statementset temporary deprecated",
    ),
    "materialized": (
        "*",
        "incremental",
        "refreshing",
        "continuous",
        "upkeep",
        "tableversions newversion",
        "altering declaring",
        "due evolution",
        "lifecycle",
        "figures folder",
        "inspection",
    ),
    "server": (
        *("http", "*", "access", "protocol", "eventstreams", "page", "endpoints", "application", "pagemounting", "serving"),
        "teamservice",
    ),
    "cli": ("*", "text", "command", "wordcompletion", "rows", "shell", "commands", "main"),
}
# Base names that several modules have, and the one thing that they are about. Commands and contracts need no reason: each is called
# after what it is the command or the contract of.
SAME_THING = {
    "alter definition materialized merge rows session show tabledefinition": "a kind of statement: parsed, its value, carried out",
    "source": "the text of a statement, and places in it",
    "change": "UPDATE, DELETE and MERGE: as a statement, as tasks, as tasks of Spark",
    "compact publish layers": "work cut into tasks, and these tasks run by Spark",
    "writer": "what takes the rows of one commit, in this process and in Spark's tasks",
    "engine queryerrors native": "an engine of queries: the port and its two implementations",
    "functions": "functions of the user's own: found in a text, registered, called by each engine",
    "coercion": "values of several types made one: of the engine's own expressions, of Spark's SQL",
    "topicsource": "the port to a topic of others, and Kafka behind it",
    "logstore": "the port to a log system, and Kafka behind it",
    "settings": "options parsed once into a frozen value: of a catalog, of a table's store, of its log",
    "opening": "from what names a thing to the thing: a file store, a log, a catalog, a table",
}
# Layers whose modules, classes and functions say what they do or are, and put no riddles.
PLAINLY_DESCRIBED = (
    *LAYERS[0].split(),
    "telemetry",
    "types",
    "json",
    "format",
    "lsm",
    "io",
    "store",
    "log",
    "catalog",
    "table",
    "cdc",
    "distributed",
    "sql",
    "environment",
    "materialized",
    "tableenvironment",
    "server",
    "agents",
    "cli",
    "testing",
)
# Folders whose variables and parameters say what their value is (not yet those of tablestore/testing), and the words that say
# of any value only that it is there.
NAMED_FOR_THEIR_VALUE = ("tablestore", "connectors")
EMPTY_NAMES = {"found", "made", "given", "asked", "told", "taken"}
RIDDLE = re.compile(
    r"(What|How|Which|Where|When|Who|Whose|Why|Whether|Of|Does|Do|Is|Are|Can|May|Might|Should)\b|[^\n]*(\n[^\n]+)*\?(\n\n|\s*$)"
)
IMPORTED = re.compile(r"tablestore(\.\w+)+:\w+")
NAMED_AFTER = ("tablestore/cli/commands", "tablestore/testing/contracts")
PLACES = {name: place for place, names in enumerate(LAYERS) for name in names.split()}
ROOM_PLACES = {
    layer: {name: place for place, names in enumerate(steps) for name in names.split()} for layer, steps in ROOMS.items()
}
BASE = set(LAYERS[0].split())
CONNECTOR_PLACE = PLACES["cli"]

# What the engine must not know. Exception: whoever starts a broker asks it whether it is up.
CONNECTORS = {"connectors", "pyspark_tablestore", "tablestore_kafka", "tablestore_duckdb"}
FOREIGN = {"pyspark", "confluent_kafka", "tests", "benchmarks", "examples"} | CONNECTORS
FOREIGN_ALLOWED = {
    ("tablestore.testing.kafka.broker", "confluent_kafka"),
}


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


@pytest.mark.deep
def test_every_import_points_left(project: Path) -> None:
    wrong = [found for found in imports_of_ours(project) if points_right(found)]
    assert not wrong, "these imports point right:\n" + "\n".join(map(str, wrong))


@pytest.mark.deep
def test_every_import_between_rooms_points_left(project: Path) -> None:
    wrong = [found for found in imports_of_ours(project) if crosses_rooms(found)]
    assert not wrong, "these imports point to a room on the right:\n" + "\n".join(map(str, wrong))


def test_a_name_of_a_module_has_one_meaning(project: Path) -> None:
    files = [file.relative_to(project) for folder in ("tablestore", "connectors") for file in (project / folder).rglob("*.py")]
    named = [file.stem for file in files if not file.stem.startswith("__") and not str(file).startswith(NAMED_AFTER)]
    repeated = {name for name, count in Counter(named).items() if count > 1}
    allowed = {name for names in SAME_THING for name in names.split()}
    assert repeated <= allowed, f"two modules have one of these names: rename one, or say what both are about: {repeated - allowed}"
    assert repeated >= allowed, f"only one module has the name: {allowed - repeated}"


@pytest.mark.deep
def test_the_engine_knows_neither_spark_nor_kafka_nor_a_connector(project: Path) -> None:
    wrong = [
        found
        for found in imports_of_ours(project)
        if root_of(found.where) == "tablestore"
        and root_of(found.target) in FOREIGN
        and (found.where, root_of(found.target)) not in FOREIGN_ALLOWED
    ]
    assert not wrong, "the engine imports a client or a connector:\n" + "\n".join(map(str, wrong))


@pytest.mark.deep_after(5)
@pytest.mark.parametrize("layer", [*PLAINLY_DESCRIBED, "connectors"])
def test_a_description_says_what_is_there_and_asks_nothing(project: Path, layer: str) -> None:
    place = project / layer if layer in CONNECTORS else project / "tablestore" / layer
    for file in place.rglob("*.py") if place.is_dir() else [place.with_suffix(".py")]:
        wrong = [name for name, text in descriptions_in(parsed(file)) if RIDDLE.match(text)]
        assert not wrong, f"{file}: these descriptions begin with a question or a riddle: {', '.join(wrong)}"


@pytest.mark.parametrize(
    ("text", "is_riddle"),
    [
        ("Which files may a scan leave out?\n\n    one  two", True),
        ("Of writers that come one after the other.", True),
        ("Can it?", True),
        ("The next task, if any is due?", True),
        ("Leaves out files whose statistics exclude a filter.", False),
        ("Whole numbers.\n\nWhy? Because.", False),
        ("Offsets of a log.", False),
    ],
)
def test_a_riddle_is_told_from_a_description(text: str, is_riddle: bool) -> None:
    assert (RIDDLE.match(text) is not None) == is_riddle


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("folder", NAMED_FOR_THEIR_VALUE)
def test_a_variable_says_what_its_value_is(project: Path, folder: str) -> None:
    for file in (project / folder).rglob("*.py"):
        if not file.is_relative_to(project / "tablestore/testing"):
            wrong = [f"{name} in line {line}" for name, line in variables_in(parsed(file)) if name in EMPTY_NAMES]
            assert not wrong, f"{file}: these names say nothing of the value (split, schema, snapshot …): {', '.join(wrong)}"


@pytest.mark.parametrize(
    "text",
    [
        "found = 1",
        "found: int = 1",
        "first, *found = values",
        "for found in values: pass",
        "[found for found in values]",
        "while (found := read()): pass",
        "with opened() as found: pass",
        "try: read()\nexcept OSError as found: pass",
        "match values:\n    case [1, found]: pass",
        "match values:\n    case [1, *found]: pass",
        "match values:\n    case {1: 1, **found}: pass",
        "def read(found): pass",
        "lambda *found: 1",
    ],
)
def test_a_variable_is_seen_wherever_it_is_named(text: str) -> None:
    assert [name for name, _ in variables_in(parsed(text)) if name in EMPTY_NAMES] == ["found"]


def test_a_field_is_no_variable() -> None:
    assert not list(variables_in(parsed("class Fault:\n    found: str\nfault.found = cause(found=fault.made)")))


@pytest.mark.deep
def test_no_module_imports_itself_through_others(project: Path) -> None:
    runs: dict[str, dict[str, Import]] = {}
    for found in imports_of_ours(project):
        # The package's own `__init__` hands out names from everywhere, when they are asked for.
        if found.where != "tablestore" and found.target != "tablestore":
            runs.setdefault(found.where, {}).setdefault(found.target, found)
    circle = first_circle({where: list(targets) for where, targets in runs.items()})
    lines = [str(runs[here][there]) for here, there in pairwise(circle)]
    assert not circle, "these imports go in a circle:\n" + "\n".join(lines)


def test_every_package_and_module_has_a_place(project: Path) -> None:
    def unplaced(folder: Path, placed: Iterable[str]) -> list[str]:
        found = {path.stem for path in folder.iterdir() if path.suffix == ".py" or any(path.glob("**/*.py"))}
        return sorted(found - set(placed) - {"__init__", "__main__"})

    layers = unplaced(project / "tablestore", PLACES)
    assert not layers, f"give these a place in the order of the layers: {', '.join(layers)}"
    for layer, places in ROOM_PLACES.items():
        folder = project / "tablestore" / layer
        rooms = [name for name in unplaced(folder, places) if (folder / name).is_dir()]
        assert not rooms, f"give these rooms of {layer} a place in its order: {', '.join(rooms)}"
        gone = [name for name in places if name != "*" and not ((folder / name).is_dir() or (folder / f"{name}.py").exists())]
        assert not gone, f"{layer} has a place for what is not there: {', '.join(gone)}"


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
        ("pyspark_tablestore.reader", "tablestore.distributed.read", False),
        ("pyspark_tablestore.reader", "tablestore.cli.main", True),
        ("tests.support.commandline", "tablestore.cli.main", False),
    ],
)
def test_the_rule_tells_left_from_right(where: str, target: str, right: bool) -> None:
    assert points_right(Import(where, target, Path("x.py"), 1, True)) is right


@pytest.mark.parametrize(
    ("where", "target", "right"),
    [
        ("tablestore.store.context", "tablestore.store.commit.committer", True),
        ("tablestore.store.commit.committer", "tablestore.store.context", False),
        ("tablestore.store.scan.scanplan", "tablestore.store.write.datawriter", True),
        ("tablestore.store.scan.scanplan", "tablestore.store.scan.lookup", False),
        ("tablestore.log.publishedlog", "tablestore.log.publish.publisher", False),
        ("tablestore.log.publish.publisher", "tablestore.log.publishedlog", True),
        ("tablestore.log.settings", "tablestore.store.context", False),
    ],
)
def test_the_rule_knows_the_order_of_rooms(where: str, target: str, right: bool) -> None:
    assert crosses_rooms(Import(where, target, Path("x.py"), 1, True)) is right


def test_a_circle_is_found() -> None:
    assert first_circle({"a": ["b"], "b": ["c"], "c": ["b"]}) == ["b", "c", "b"]
    assert first_circle({"a": ["b", "c"], "b": ["c"], "c": []}) == []


def points_right(found: Import) -> bool:
    where, target = found.where.split("."), found.target.split(".")
    if target[0] != "tablestore" or found.where == "tablestore":
        return False
    if target == ["tablestore"]:
        # The public names are for users: inside, import from the module that defines a thing.
        return where[1:2] not in (["testing"], ["cli"]) and where[0] == "tablestore"
    there = target[1]
    if where[0] == "tests":
        return False
    if where[0] != "tablestore":
        return PLACES.get(there, CONNECTOR_PLACE) >= CONNECTOR_PLACE
    here = where[1]
    if here == there or {here, there} <= BASE:
        return False
    return PLACES.get(there, 99) >= PLACES.get(here, -1)


def crosses_rooms(found: Import) -> bool:
    where, target = found.where.split("."), found.target.split(".")
    if where[:2] != target[:2] or len(where) < 3 or len(target) < 3 or where[0] != "tablestore" or where[1] not in ROOM_PLACES:
        return False
    places = ROOM_PLACES[where[1]]
    return places.get(target[2], places["*"]) > places.get(where[2], places["*"])


def imports_of_ours(project: Path) -> list[Import]:
    roots = [project, *sorted((project / "connectors").iterdir())]
    modules: dict[str, Path] = {}
    for root in roots:
        here = ["tablestore", "tests/support"] if root == project else [path.name for path in root.iterdir() if path.is_dir()]
        for file in sorted(file for package in here for file in (root / package).rglob("*.py")):
            parts = file.relative_to(root).with_suffix("").parts
            modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    assert modules, "there is no source to read"
    return [found for name, file in modules.items() for found in imports_in(parsed(file), name, file, project, set(modules))]


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
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and IMPORTED.fullmatch(node.value):
            targets = [node.value.partition(":")[0]]
        for target in dict.fromkeys(targets):
            yield Import(where, target, shown, node.lineno, id(node) not in typing_only)  # type: ignore[attr-defined]


def descriptions_in(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The docstrings of a module and of what it defines, with the names that they describe."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield getattr(node, "name", "the module"), ast.get_docstring(node) or ""


def variables_in(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """The variables and parameters that a module names, with their lines; the fields of its classes are none."""
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    fields = {statement.target for node in classes for statement in node.body if isinstance(statement, ast.AnnAssign)}
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) if node not in fields:
                yield name, node.lineno
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name, node.lineno
            case ast.MatchMapping(rest=str(name)):
                yield name, node.lineno


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
