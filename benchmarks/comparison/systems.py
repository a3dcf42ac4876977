"""Lists the systems that are compared, the environment that each runs in, and the settings that its documents call fast.

Each has the codec, file sizes and threads of its own defaults. Differences that a reader should know are in ``note``.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from benchmarks.peers import PeerUnavailable, load_setup

Family = Literal["python", "spark"]
OURS: Mapping[Family, str] = {"python": "tablestore", "spark": "tablestore on Spark"}
FLOOR: Mapping[Family, str] = {"python": "plain Parquet (pyarrow)", "spark": "plain Parquet (Spark)"}
BUCKETS = "2"
"""As many as the cores that the comparison is meant for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemSpec:
    """A system: ``module`` of ``workers`` runs in ``environment`` (of ``setup_oracles``; None: this interpreter) with ``settings``;
    ``jars`` of ``setup_oracles`` are handed to Spark."""

    name: str
    family: Family
    module: str
    environment: str | None = None
    jars: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A system that is here: the interpreter, the settings with the paths of the jars, and what was passed over."""

    spec: SystemSpec
    python: Path
    settings: Mapping[str, Any]
    note: str


def spec_list() -> Sequence[SystemSpec]:
    """All systems, floors first."""
    paimon = {"bucket": BUCKETS}
    return (
        SystemSpec(
            name=FLOOR["python"],
            family="python",
            module="plain_parquet",
            note="a floor, not a table: no keys, no snapshots",
        ),
        SystemSpec(
            name=OURS["python"],
            family="python",
            module="tablestore_python",
            settings={"bucket": BUCKETS},
            note="writers compact small runs, as they do unless told not to; a commit syncs its files to the disk (13 calls)",
        ),
        SystemSpec(
            name="deltalake",
            family="python",
            module="deltalake_python",
            environment="deltalake",
            note="merges rewrite the files that they touch; changes are fed only where they are read; a commit syncs nothing",
        ),
        SystemSpec(
            name="pyiceberg",
            family="python",
            module="pyiceberg_python",
            environment="pyiceberg",
            note="the catalog is SQLite; upserts rewrite the files that they touch",
        ),
        SystemSpec(
            name="pypaimon",
            family="python",
            module="pypaimon_python",
            environment="pypaimon",
            settings={"native": False, "options": paimon},
            note="in Python alone; it never compacts; a commit syncs nothing",
        ),
        SystemSpec(
            name="pypaimon native",
            family="python",
            module="pypaimon_python",
            environment="pypaimon",
            settings={"native": True, "options": paimon},
            note="with read.native.enabled and write.native.enabled; it never compacts; a commit syncs twice",
        ),
        SystemSpec(
            name="DuckLake",
            family="python",
            module="ducklake_python",
            environment="ducklake",
            settings={"catalog": "duckdb"},
            note="the catalog is a DuckDB file, SQLite where several processes write; no keys",
        ),
        SystemSpec(
            name=FLOOR["spark"], family="spark", module="spark_parquet", environment="spark-4.0", note="a floor, not a table"
        ),
        SystemSpec(
            name=OURS["spark"],
            family="spark",
            module="spark_tablestore",
            settings={"bucket": BUCKETS},
            note="in Python workers of Spark",
        ),
        SystemSpec(
            name="Paimon on Spark", family="spark", module="spark_paimon", environment="spark-3.5", jars="paimon", settings=paimon
        ),
        SystemSpec(
            name="Delta on Spark",
            family="spark",
            module="spark_delta",
            environment="spark-4.0",
            jars="delta",
            note="with deletion vectors",
        ),
        SystemSpec(
            name="Iceberg on Spark",
            family="spark",
            module="spark_iceberg",
            environment="spark-4.0",
            jars="iceberg",
            note="format version 2, merge on read",
        ),
        SystemSpec(
            name="Hudi on Spark",
            family="spark",
            module="spark_hudi",
            environment="spark-3.5",
            jars="hudi",
            note="merge on read; bulk_insert for the load; an index of 2 buckets",
        ),
    )


def install(spec: SystemSpec) -> Installed:
    """What a system needs, fetched if it is not here. Raises PeerUnavailable."""
    settings, note = dict(spec.settings), spec.note
    python = Path(sys.executable)
    if spec.family == "spark":
        from benchmarks.sparksession import why_no_java

        if (why := why_no_java()) is not None:
            raise PeerUnavailable(why)
    if spec.environment is None and spec.family == "spark":
        from benchmarks.sparksession import why_no_spark

        if (why := why_no_spark()) is not None:
            raise PeerUnavailable(why)
    if spec.environment or spec.jars:
        setup = load_setup()
        try:
            if spec.environment:
                python = Path(setup.ensure_environment(spec.environment, _say))
            if spec.jars:
                jars, passed_over = setup.ensure_jars(spec.jars, _say)
                settings["jars"] = [str(path) for path in jars]
                note = "; ".join([text for text in (note, *(f"an older version: {reason}" for reason in passed_over)) if text])
        except setup.SetupError as error:
            raise PeerUnavailable(str(error)) from error
    return Installed(spec=spec, python=python, settings=settings, note=note)


def _say(step: str) -> None:
    print(step, file=sys.stderr, flush=True)


def settings_text(installed: Installed) -> str:
    """The settings as the worker reads them."""
    return json.dumps(dict(installed.settings))
