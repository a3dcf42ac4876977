"""Nothing is documented that does nothing: some code reads every option, every setting made of options, and imports every extra."""

import ast
import dataclasses
import importlib
import re
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tablestore import options
from tests.support.syntax import parsed

# What these say of an option does not make it do anything: the registry, its checks, and which options may be altered.
_SAYS_ONLY = ("tablestore/options.py", "tablestore/types/evolution/optionchanges.py")
# The two lists of options that tablestore refuses to open a table with.
_REFUSED = {option.key for option in options._UNSUPPORTED_FLAGS} | set(options._NEVER_ABSENT)
_BY_NAME = ("import_module", "find_spec")
# What pyspark asks for and its own package does not say; the driver that SQLAlchemy loads; what mkdocs.yml names; what `make` runs.
_WITHOUT_IMPORT = {
    "docs": {"mkdocs-material", "mkdocstrings", "pymdown-extensions"},
    "spark": {"grpcio", "grpcio-status", "protobuf", "googleapis-common-protos", "zstandard"},
    "postgresql": {"psycopg"},
    "dev": {"backports.zstd", "pytest-cov", "pytest-xdist", "ruff", "mypy", "twine", "editables"},
}


def _names_read(path: Path) -> Iterator[str]:
    """Every name that a module reads, and every attribute with a point before it; not those of its messages and imports."""
    waiting: list[ast.AST] = [parsed(path)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.JoinedStr):
            continue
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            yield f".{node.attr}" if isinstance(node, ast.Attribute) else node.id
        waiting.extend(ast.iter_child_nodes(node))


@pytest.fixture(scope="module")
def product(project: Path) -> dict[str, set[str]]:
    """The names that each module of the product reads."""
    paths = [*project.glob("tablestore/**/*.py"), *project.glob("connectors/**/*.py")]
    return {path.relative_to(project).as_posix(): set(_names_read(path)) for path in paths}


@pytest.mark.deep
def test_every_option_is_read_by_some_code_or_refused(product: dict[str, set[str]]) -> None:
    constants = {value.key: name for name, value in vars(options).items() if isinstance(value, options.Option)}
    assert set(constants) == set(options.TABLE_OPTIONS)
    read = set().union(*(names for path, names in product.items() if path not in _SAYS_ONLY))
    unread = {key for key, name in constants.items() if read.isdisjoint({name, f".{name}"}) and key not in _REFUSED}
    assert unread == set()


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(
    "name",
    [
        "store.settings.TableSettings",
        "store.settings.MergePolicy",
        "store.compact.compactionsettings.CompactionSettings",
        "store.changelogproducer.ChangelogSettings",
        "log.settings.LogSettings",
        "format.parquet.parquetfile.DataFileOptions",
    ],
)
def test_every_setting_that_is_made_of_options_is_used(product: dict[str, set[str]], name: str) -> None:
    module, _, settings = name.rpartition(".")
    fields = dataclasses.fields(getattr(importlib.import_module(f"tablestore.{module}"), settings))
    assert {f".{field.name}" for field in fields} - set().union(*product.values()) == set()


def _imported(paths: Iterable[Path]) -> set[str]:
    """The packages that modules import, wherever in them; by name too, or to find their files (``find_spec("x")``)."""
    found = set()
    for path in paths:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Import):
                found.update(alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add((node.module or "").partition(".")[0])
            elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in _BY_NAME:
                found.update(str(a.value).partition(".")[0] for a in node.args if isinstance(a, ast.Constant))
    return found


@pytest.mark.deep
def test_every_extra_brings_what_some_code_imports(project: Path) -> None:
    wanted = tomllib.loads((project / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    brought = {(name.lower(), module) for module, names in packages_distributions().items() for name in names}
    folders = ("tablestore", "connectors", "benchmarks", "examples", "docs")
    shipped = [path for top in folders for path in project.glob(f"{top}/**/*.py")]
    used = _imported(shipped)
    used_by_tests = used | _imported(project.glob("tests/**/*.py"))
    for extra, needs in wanted.items():
        names = {re.split(r"[\[<>=!~; ]", need)[0] for need in needs} - {"managed-tablestore"}
        imports = used_by_tests if extra == "dev" else used
        working = {name for name, module in brought if module in imports} | imports
        idle = {name for name in names if working.isdisjoint({name.lower(), name.lower().replace("-", "_")})}
        assert idle == _WITHOUT_IMPORT.get(extra, set()), f"the extra {extra} brings what nothing imports"
        assert names - idle or extra in ("all", "postgresql"), f"nothing imports what the extra {extra} brings"
