"""Collects the names that tablestore puts into SQL from its own source, so that a new one joins the tests by itself.

Names are the texts in the modules that write SQL which look like one, whole or with what an f-string counts in its end as 0:
``_tablestore_target``, ``__relation_0``, ``key_0``.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.support.syntax import parsed

ROOT = Path(__file__).parents[3]
FOLDERS = (
    "tablestore/sql",
    "tablestore/environment/rows",
    "tablestore/materialized",
    "connectors/duckdb",
    "connectors/spark/pyspark_tablestore",
)
_NAME = re.compile(r"[a-z_][a-z0-9_]*|_[A-Z_]+[0-9a-z_]*")
# Chosen for tablestore alone: the others also are plain words.
_OWN = re.compile(r"_|tablestore|.*_0")


def internal_names() -> tuple[str, ...]:
    """All of them, in order."""
    trees = [parsed(path) for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    constants = {name: value for tree in trees for name, value in _constants(tree)}
    return tuple(sorted({name for tree in trees for name in _texts(tree, constants) if _NAME.fullmatch(name)}))


def own_names(names: Sequence[str]) -> tuple[str, ...]:
    """Those that are no plain words."""
    return tuple(name for name in names if _OWN.match(name))


def _constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(text))):
                yield name, text
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                for target, value in zip(targets, values, strict=True):
                    if isinstance(target, ast.Name) and isinstance(value, ast.Constant) and isinstance(value.value, str):
                        yield target.id, value.value


def _texts(tree: ast.Module, constants: dict[str, str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
            if node.value.endswith("_"):
                yield f"{node.value}0"
        elif isinstance(node, ast.JoinedStr):
            yield "".join(_piece(piece, constants) for piece in node.values)


def _piece(piece: ast.expr, constants: dict[str, str]) -> str:
    match piece:
        case ast.Constant(value=str(text)):
            return text
        case ast.FormattedValue(value=ast.Name(id=name)) if name in constants:
            return constants[name]
    return "0"
