"""``import tablestore`` is cheap and its public names are there."""

import subprocess
import sys
from pathlib import Path

import pytest

import tablestore
from benchmarks import scaletables

# Each of these is an optional dependency, or slow to load, or both.
HEAVY = (
    *("pyspark", "confluent_kafka", "pandas", "pyarrow.dataset", "botocore", "sqlglot", "polars", "duckdb", "typer", "rich"),
    "mcp",
)

LOADED = f"""
import sys
{{statement}}
print(",".join(name for name in {HEAVY!r} if name in sys.modules))
"""


# The errors, and what takes secrets out of their messages.
ERRORS = ["tablestore", "tablestore.errors", "tablestore.redaction"]


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("import tablestore", id="the package"),
        pytest.param("import tablestore; [getattr(tablestore, name) for name in tablestore.__all__]", id="every name"),
    ],
)
def test_import_loads_nothing_heavy(statement: str) -> None:
    assert run(LOADED.format(statement=statement)).strip() == ""


def test_import_alone_loads_the_errors_and_nothing_else() -> None:
    # What is loaded before it (by the interpreter, by .pth files) is not its doing.
    loaded = run("import sys; before = set(sys.modules); import tablestore; print(*sorted(set(sys.modules) - before))").split()
    assert [name for name in loaded if name.partition(".")[0] not in sys.stdlib_module_names] == ERRORS
    # The rest is enum, typing and what they need: 28 modules of the standard library in Python 3.11.
    assert len(loaded) <= 40


@pytest.mark.parametrize("name", tablestore.__all__)
def test_public_name_is_usable(name: str) -> None:
    assert getattr(tablestore, name) is not None
    assert name in dir(tablestore)


def test_public_errors_share_one_base() -> None:
    public = [getattr(tablestore, name) for name in tablestore.__all__]
    errors = [value for value in public if isinstance(value, type) and issubclass(value, Exception)]
    assert len(errors) == 9
    assert all(issubclass(error, tablestore.TablestoreError) for error in errors)


def test_unknown_name_says_which_names_there_are() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'opn_table'.*open_table"):
        tablestore.opn_table  # noqa: B018


def run(program: str) -> str:
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.deep
def test_what_reads_large_manifests_loads_no_pandas(tmp_path: Path) -> None:
    """It takes longer to load than they take to read."""
    scaletables.build(tmp_path, scaletables.Shape(files=2_100), 1)
    used = f"""
table = tablestore.open_catalog({str(tmp_path)!r}).table("default.files")
plans = [table.scan(filter=text).plan for text in ("day = DATE '1900-03-01'", "id = 1500", "day is null")]
assert [len(plan.files) for plan in plans] == [6, 365, 0] and table.scan().count() == 2_100_000
"""
    assert "pandas" not in run(LOADED.format(statement="import tablestore" + used)).strip().split(",")
