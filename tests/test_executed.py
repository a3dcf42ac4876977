"""Nothing that is stored or sent is unpickled, evaluated or imported: every place that could do so is named here, with the reason.

What crosses processes is JSON or Arrow. What a session itself pickles (closures of Spark's tasks, hooks) goes with the job, over
Spark's own channel, and is never read from a warehouse or a topic.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tablestore import errors
from tablestore.distributed.taskjson import decode_error, encode_error, encode_task
from tablestore.errors import ConflictError, FormatError, TablestoreError
from tablestore.log.publish.ownercheck import ForeignLog
from tests.support.syntax import parsed

ROOT = Path(__file__).parents[1]
MODULES = {"pickle", "cloudpickle", "dill", "marshal", "shelve", "joblib", "yaml", "code", "codeop", "runpy", "imp", "ctypes"}
NAMES = {"eval", "exec", "compile", "__import__"}
ATTRIBUTES = {"import_module", "entry_points", "run_path", "run_module", "load_module", "exec_module", "system", "popen"}
HOLDERS = {"os", "importlib", "metadata", "util", "runpy"}
KEYWORDS = {"allow_pickle", "shell"}

INSTALLED = "only names that an installed package registers, looked up by name among them"
ALLOWED = {
    ("tablestore/environment/jobs.py", "pickle"): "the session's own hook, there and back in one process: does it travel?",
    ("tablestore/environment/session/callables.py", "import_module"): "CREATE TEMPORARY FUNCTION … AS 'module.name', which is "
    "stored nowhere: text of the person at work",
    ("tablestore/io/rename.py", "ctypes"): "calls of the C library that are written in the code",
    ("tablestore/lazy.py", "import_module"): "names that are written in the code",
    ("tablestore/__init__.py", "import_module"): "the public names, which are written in the code",
    ("tablestore/lsm/functions/aggregatesketches.py", "import_module"): "a name that is written in the code",
    ("tablestore/sql/duckdb/functions/ciphers.py", "import_module"): "names that are written in the code",
    ("tablestore/log/connector.py", "entry_points"): INSTALLED,
    ("tablestore/cdc/topicsource.py", "entry_points"): INSTALLED,
    ("tablestore/environment/managed/factory.py", "entry_points"): INSTALLED,
    ("tablestore/environment/rows/insert.py", "entry_points"): INSTALLED,
    ("tablestore/materialized/workflows.py", "entry_points"): INSTALLED,
    ("tablestore/environment/session/engines.py", "entry_points"): INSTALLED,
    ("tablestore/catalog/settings.py", "entry_points"): INSTALLED,
    ("tablestore/catalog/opening.py", "entry_points"): INSTALLED,
}


def sources() -> Iterator[tuple[str, ast.Module]]:
    for folder in ("tablestore", "connectors"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            place = path.relative_to(ROOT).as_posix()
            if not place.startswith("tablestore/testing/"):
                yield place, parsed(path)


def uses(tree: ast.Module) -> Iterator[str]:
    """What a module imports or calls of the things that run what they are given."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (one.name.partition(".")[0] for one in names if one.name.partition(".")[0] in MODULES)
            case ast.ImportFrom(module=str(module), names=names):
                if module.partition(".")[0] in MODULES:
                    yield module.partition(".")[0]
                yield from (one.name for one in names if one.name in ATTRIBUTES)
            case ast.Call(func=ast.Name(id=name)) if name in NAMES:
                yield name
            case ast.Attribute(attr=name, value=ast.Name(id=module)) if name in ATTRIBUTES and module in HOLDERS:
                yield name
            case ast.keyword(arg=str(name)) if name in KEYWORDS:
                yield name


@pytest.mark.deep
def test_every_place_that_could_run_what_it_is_given_is_named_with_its_reason() -> None:
    found = {(place, use) for place, tree in sources() for use in uses(tree)}
    assert found == ALLOWED.keys()


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from cloudpickle import loads",
        "import yaml as y",
        "eval(x)",
        "__import__(x)",
        "from importlib import import_module as m",
        "import importlib\nimportlib.import_module(x)",
        "import os\nos.system(x)",
        "import numpy as np\nnp.load(x, allow_pickle=True)",
        "import subprocess\nsubprocess.run(x, shell=True)",
    ],
)
def test_each_way_to_run_text_is_seen(text: str) -> None:
    assert list(uses(parsed(text)))


# ---- errors on their way between processes


def test_an_error_comes_back_with_its_class_kind_and_message() -> None:
    for cls in vars(errors).values():
        if isinstance(cls, type) and issubclass(cls, TablestoreError):
            back = decode_error(encode_error(cls("why", kind="some-kind")))
            assert (type(back), back.message, back.kind) == (cls, "why", "some-kind")


def test_an_error_of_a_smaller_class_comes_back_as_the_one_it_is_caught_by() -> None:
    back = decode_error(encode_error(ForeignLog("whose")))
    assert type(back) is ConflictError and back.kind == "foreign-log"


@pytest.mark.parametrize("name", ["os.system", "__builtins__", "_rebuild", "", "Exception", "KeyboardInterrupt", 7])
def test_a_class_that_is_none_of_ours_is_not_made(name: object) -> None:
    with pytest.raises(FormatError):
        decode_error(encode_task("error of a task", {"class": name, "message": "m", "errorKind": "k"}))
