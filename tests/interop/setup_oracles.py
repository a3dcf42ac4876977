"""Fetches the oracles: ``python tests/interop/setup_oracles.py``. The test fixtures call it too.

    .cache/interop/java/lib/*.jar      by Maven (pom-<version>.xml)
    .cache/interop/java/classes        the program of java/, compiled by javac
    .cache/interop/pypaimon            a virtual environment of its own (pypaimon pins another pyarrow)
    .cache/interop/tpc                 another one, with the DuckDB that has the data of TPC-H and TPC-DS
    .cache/interop/deltalake           another one, for the benchmarks; this and the next ones are made where they are asked for
    .cache/interop/ducklake, spark-3.5, spark-4.0   others, for the comparison of the benchmarks
    .cache/interop/jars/NAME           by Maven: what a table format brings to Spark (JARS)
    .cache/interop/ray, daft           others, with what tablestore needs
    .cache/interop/typecheckers        another one
    .cache/interop/paimonspark         another one with Spark, and beside it the jar of Paimon for it, by Maven (pom-spark.xml)

Each part carries a stamp with a hash of what it was made from and is left alone while that matches, so a second run
takes no time and needs no network. A lock makes concurrent runs wait for each other.

The Java core is taken in the newest version of ``JAVA_VERSIONS`` that Maven can resolve; which one it is stands in the
stamp, is printed, and is reported at the end of a test run. TABLESTORE_INTEROP_PAIMON=<version> allows only that one;
``--refresh`` asks Maven again. TABLESTORE_INTEROP_PAIMON_SPARK=<path> is a jar of Paimon for Spark 3.5 in place of Maven's.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from collections.abc import Callable, Sequence
from pathlib import Path

from filelock import FileLock

HERE = Path(__file__).resolve().parent
CACHE = HERE.parents[1] / ".cache" / "interop"
JAVA_VERSIONS = ("2.0.0", "1.4.2")
_NEEDS = tuple(tomllib.loads((HERE.parents[1] / "pyproject.toml").read_text())["project"]["dependencies"])
# What is in each environment.
PINS = {
    "pypaimon": ("pypaimon==2.1.0", "pypaimon-rust==0.4.0"),
    # The extensions are for exactly this DuckDB.
    "tpc": ("duckdb==1.4.4", "duckdb-ext-tpch==1.4.4.20260205", "duckdb-ext-tpcds==1.4.4.20260205"),
    "deltalake": ("deltalake==1.6.6", "pyarrow==26.0.1", "numpy==2.4.6"),
    "pyiceberg": ("pyiceberg[sql-sqlite]==0.12.0", "pyarrow==26.0.1", "numpy==2.4.6"),
    # The extensions of a DuckDB come from a host of its own; these are the same files, for exactly this DuckDB.
    "ducklake": (
        "duckdb==1.4.4",
        "duckdb-ext-ducklake==1.4.4.20260205",
        "duckdb-ext-sqlite==1.4.4.20260205",
        "pyarrow==26.0.1",
        "numpy==2.4.6",
    ),
    "spark-3.5": ("pyspark==3.5.8", "pyarrow==26.0.1", "pandas==2.3.3", "setuptools==80.9.0"),
    "spark-4.0": ("pyspark==4.0.5", "pyarrow==26.0.1", "pandas==2.3.3"),
    "ray": ("ray[data]==2.60.0", *_NEEDS),
    "daft": ("daft==0.7.26", *_NEEDS),
    "paimonspark": ("pyspark==3.5.8",),
    # basedpyright is pyright with a Node of its own.
    "typecheckers": ("mypy==2.4.1", "basedpyright==1.40.2", "pyarrow-stubs==20.0.0.20260819", "pandas-stubs==3.1.0.261029"),
}
# What a table format brings to Spark, the newest version first; the first one that Maven can resolve is taken.
JARS: dict[str, tuple[tuple[str, ...], ...]] = {
    "paimon": (("org.apache.paimon:paimon-spark-3.5_2.12:1.4.2",), ("org.apache.paimon:paimon-spark-3.5:0.9.0",)),
    "delta": (("io.delta:delta-spark_2.13:4.0.1", "io.delta:delta-storage:4.0.1"),),
    "iceberg": (("org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0",),),
    "hudi": (("org.apache.hudi:hudi-spark3.5-bundle_2.12:1.1.1",),),
}
COMMAND = "python tests/interop/setup_oracles.py"

Say = Callable[[str], None]


class SetupError(Exception):
    """An oracle cannot be had here; the message says why and what to do."""


def java_command() -> str:
    """The Java launcher: that of JAVA_HOME, else the one on the path."""
    return _java_tool("java")


def ensure_java(say: Say = print) -> Path:
    """The directory with the Java oracle's lib/ and classes/, made if needed."""
    for tool in ("java", "javac"):
        if not shutil.which(_java_tool(tool)):
            raise SetupError(
                f"no {tool} here; install a JDK 17 and Maven (on Debian: apt-get install "
                f"openjdk-17-jdk-headless maven), then {COMMAND}"
            )
    home = CACHE / "java"
    with _lock("java"):
        _ensure_jars(home, say)
        _ensure_classes(home, say)
    return home


def java_version() -> str:
    """The version of Paimon that the Java oracle runs on, as far as set up; "" before."""
    stamp = _read_stamp(CACHE / "java" / "lib.stamp")
    return str(stamp.get("version", ""))


def java_passed_over() -> list[str]:
    """Why newer versions were passed over, a sentence each; empty if the newest one is there."""
    reasons = _read_stamp(CACHE / "java" / "lib.stamp").get("passed_over")
    return [str(reason) for reason in reasons] if isinstance(reasons, list) else []


def ensure_spark_jar(say: Say = print) -> Path:
    """The jar of Paimon for the Spark of the environment ``paimonspark``, fetched if needed."""
    if own := os.environ.get("TABLESTORE_INTEROP_PAIMON_SPARK"):
        return Path(own)
    pom = HERE / "java" / "pom-spark.xml"
    lib, stamp = CACHE / "paimonspark-jars", CACHE / "paimonspark-jars.stamp"
    with _lock("paimonspark-jars"):
        jars = sorted(lib.glob("*.jar"))
        if jars and _read_stamp(stamp) == {"pom": _hash([pom.read_bytes()])}:
            return jars[0]
        if not shutil.which("mvn"):
            raise SetupError(f"no mvn here to fetch Paimon for Spark; install Maven, then {COMMAND}")
        say("fetching Paimon for Spark")
        shutil.rmtree(lib, ignore_errors=True)
        _copy_jars(pom, lib, "Maven cannot resolve Paimon for Spark")
        stamp.write_text(json.dumps({"pom": _hash([pom.read_bytes()])}))
        return sorted(lib.glob("*.jar"))[0]


def ensure_environment(name: str, say: Say = print) -> Path:
    """The interpreter of an environment of ``PINS``, made if needed."""
    pins = PINS[name]
    home = CACHE / name
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    wanted = {"pins": list(pins), "python": sys.version_info[:2], "prefix": sys.base_prefix}
    wanted = json.loads(json.dumps(wanted))
    with _lock(name):
        stamp = CACHE / f"{name}.stamp"
        if _read_stamp(stamp) == wanted and python.exists():
            return python
        say(f"creating {home} with {', '.join(pins)}")
        stamp.unlink(missing_ok=True)
        venv.create(home, clear=True, with_pip=True)
        # What PYTHONPATH names would count as installed.
        install = [str(python), "-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *pins]
        _run(install, f"'pip install {' '.join(pins)}' fails")
        stamp.write_text(json.dumps(wanted))
    return python


def ensure_jars(name: str, say: Say = print) -> tuple[list[Path], list[str]]:
    """The jars of one of ``JARS``, fetched if needed, and why newer versions were passed over."""
    home = CACHE / "jars" / name
    wanted = json.loads(json.dumps(JARS[name]))
    with _lock(f"jars-{name}"):
        stamp = CACHE / "jars" / f"{name}.stamp"
        stamped = _read_stamp(stamp)
        jars = sorted(home.glob("*.jar"))
        if stamped.get("wanted") == wanted and jars and stamped.get("jars") == [path.name for path in jars]:
            reasons = stamped.get("passed_over")
            return jars, [str(reason) for reason in reasons] if isinstance(reasons, list) else []
        if not shutil.which("mvn"):
            raise SetupError("no mvn here to fetch the jars of Spark's table formats; install Maven")
        refused: list[str] = []
        for artifacts in JARS[name]:
            say(f"fetching {', '.join(artifacts)}")
            shutil.rmtree(home, ignore_errors=True)
            home.mkdir(parents=True)
            try:
                for artifact in artifacts:
                    _fetch_jar(artifact, home)
            except SetupError as error:
                refused.append(str(error))
                continue
            jars = sorted(home.glob("*.jar"))
            stamp.write_text(json.dumps({"wanted": wanted, "jars": [path.name for path in jars], "passed_over": refused}))
            return jars, refused
        raise SetupError("; ".join(refused))


def _fetch_jar(artifact: str, home: Path) -> None:
    for goal in (("dependency:get", "-Dtransitive=false"), ("dependency:copy", f"-DoutputDirectory={home}")):
        command = ["mvn", "--quiet", "--batch-mode", *goal, f"-Dartifact={artifact}"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        if result.returncode != 0:
            raise SetupError(f"Maven cannot resolve {artifact}")


# ---- Java ----------------------------------------------------------------------------------------------------------


def _java_tool(name: str) -> str:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / name) if home else name


def _ensure_jars(home: Path, say: Say) -> None:
    only = os.environ.get("TABLESTORE_INTEROP_PAIMON")
    allowed = (only,) if only else JAVA_VERSIONS
    stamp_file = home / "lib.stamp"
    stamp = _read_stamp(stamp_file)
    lib = home / "lib"
    found = sorted(path.name for path in lib.glob("*.jar"))
    version = stamp.get("version")
    if version in allowed and stamp.get("pom") == _pom_hash(str(version)) and stamp.get("jars") == found:
        return
    if not shutil.which("mvn"):
        raise SetupError(f"no mvn here to fetch the Java oracle; install Maven, then {COMMAND}")
    reasons: list[str] = []
    for version in allowed:
        if not _pom(version).exists():
            raise SetupError(f"TABLESTORE_INTEROP_PAIMON={version}: expected one of {', '.join(JAVA_VERSIONS)}")
        say(f"fetching Paimon {version} for Java")
        stamp_file.unlink(missing_ok=True)
        shutil.rmtree(lib, ignore_errors=True)
        try:
            _copy_jars(_pom(version), lib, f"Maven cannot resolve Paimon {version}")
        except SetupError as error:
            cause = re.search(r"Could not (?:find|transfer)[^(\n]*", str(error))
            reasons.append(f"Paimon {version}: {cause.group() if cause else error}")
            say(f"  {reasons[-1]}")
            continue
        jars = sorted(path.name for path in lib.glob("*.jar"))
        stamp_file.write_text(json.dumps({"version": version, "pom": _pom_hash(version), "jars": jars, "passed_over": reasons}))
        return
    raise SetupError("\n".join([*reasons, f"check the network and Maven's settings, then {COMMAND}"]))


def _copy_jars(pom: Path, lib: Path, complaint: str) -> None:
    """Puts what a pom depends on into a directory."""
    command = ["mvn", "--quiet", "--batch-mode", "--update-snapshots", "-f", str(pom), "dependency:copy-dependencies"]
    _run([*command, f"-DoutputDirectory={lib}", "-DincludeScope=runtime"], complaint)


def _ensure_classes(home: Path, say: Say) -> None:
    sources = sorted((HERE / "java").glob("*.java"))
    wanted = {"sources": _hash([path.read_bytes() for path in sources]), "version": java_version()}
    stamp_file = home / "classes.stamp"
    if _read_stamp(stamp_file) == wanted and (home / "classes" / "PaimonOracle.class").exists():
        return
    say(f"compiling the Java oracle against Paimon {java_version()}")
    stamp_file.unlink(missing_ok=True)
    shutil.rmtree(home / "classes", ignore_errors=True)
    _run(
        [
            _java_tool("javac"),
            "-encoding",
            "UTF-8",
            "-nowarn",
            "-proc:none",
            "-d",
            str(home / "classes"),
            "-cp",
            str(home / "lib" / "*"),
            *map(str, sources),
        ],
        f"javac refuses the oracle against Paimon {java_version()}",
    )
    stamp_file.write_text(json.dumps(wanted))


def _pom(version: str) -> Path:
    return HERE / "java" / f"pom-{version}.xml"


def _pom_hash(version: str) -> str:
    return _hash([_pom(version).read_bytes()])


# ---- helpers -------------------------------------------------------------------------------------------------------


def _lock(name: str) -> FileLock:
    CACHE.mkdir(parents=True, exist_ok=True)
    return FileLock(CACHE / f"{name}.lock", timeout=600)


def _hash(parts: Sequence[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def _read_stamp(path: Path) -> dict[str, object]:
    try:
        stamp = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def _run(command: Sequence[str], complaint: str) -> None:
    result = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if result.returncode != 0:
        output = re.sub(r"\x1b\[[0-9;]*m", "", result.stdout + result.stderr).strip()
        raise SetupError(f"{complaint}: {output[:1500]}")


def main() -> None:
    """Sets up all oracles and says what is there."""
    if "--refresh" in sys.argv[1:]:
        (CACHE / "java" / "lib.stamp").unlink(missing_ok=True)
    try:
        ensure_java()
        pythons = {name: ensure_environment(name) for name in ("pypaimon", "tpc")}
    except SetupError as error:
        sys.exit(str(error))
    print(f"java: Paimon {java_version()}")
    for reason in java_passed_over():
        print(f"  {reason[:400]}")
    for name, python in pythons.items():
        print(f"{name}: {', '.join(PINS[name])} in {python}")


if __name__ == "__main__":
    main()
