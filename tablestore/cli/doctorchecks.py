"""Checks of the machine: Python, libraries, Java, and whether a warehouse can be written to safely.

Each check gives one :class:`Check`. An extra that is not installed is not a problem but *absent*, with the way to get it.
"""

import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tablestore as ts
from tablestore.catalog.metacatalog import MetaCatalog
from tablestore.catalog.opening import open_meta_catalog
from tablestore.catalog.settings import JDBC, JDBC_PASSWORD, JDBC_USER, URI, CatalogSettings
from tablestore.ids import SystemIds
from tablestore.io.filestore import TEMPORARY_PREFIX, FileStore
from tablestore.io.opening import open_store

Status = Literal["ok", "absent", "warning", "problem"]
REQUIRED = ("pyarrow", "numpy", "fastavro", "sqlglot", "fsspec", "filelock", "tenacity", "pyroaring")
OLDEST_PYTHON, OLDEST_JAVA, OLDEST_SPARK = (3, 11), 17, (4, 0)
LITTLE_SPACE_BYTES = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at."""

    name: str
    status: Status
    detail: str
    fix: str | None = None


def check_machine() -> Iterator[Check]:
    """The machine, apart from any warehouse."""
    version = platform.python_version()
    if sys.version_info < OLDEST_PYTHON:
        yield Check(name="python", status="problem", detail=version, fix="install Python 3.11 or later")
    else:
        yield Check(name="python", status="ok", detail=f"{version} on {platform.system()} {platform.machine()}")
    yield _itself()
    for name in REQUIRED:
        package_version = installed(name)
        fix = None if package_version else "pip install --upgrade managed-tablestore"
        yield Check(name=name, status="ok" if package_version else "problem", detail=package_version or "not installed", fix=fix)
    yield from _spark()
    yield _optional("confluent-kafka", "kafka", "for the change log on Kafka")
    yield _optional("botocore", "s3", "for tables on S3")


def _itself() -> Check:
    """The package ``tablestore``, and whether another distribution brings one of this name."""
    if other := installed("tablestore"):
        detail = f"{ts.__version__}, and beside it {other} of the distribution `tablestore`, another product with the same package"
        fix = "pip uninstall --yes tablestore managed-tablestore && pip install managed-tablestore"
        return Check(name="tablestore", status="problem", detail=detail, fix=fix)
    return Check(name="tablestore", status="ok", detail=ts.__version__)


def installed(name: str) -> str | None:
    """The version of an installed distribution."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _optional(name: str, extra: str, purpose: str) -> Check:
    if version := installed(name):
        return Check(name=name, status="ok", detail=version)
    return Check(name=name, status="absent", detail=f"not installed, {purpose}", fix=f"pip install 'managed-tablestore[{extra}]'")


def _spark() -> Iterator[Check]:
    spark, java = installed("pyspark"), java_version()
    if spark is None:
        yield _optional("pyspark", "spark", "for Spark")
    elif _numbers(spark) < OLDEST_SPARK:
        yield Check(name="pyspark", status="problem", detail=spark, fix="pip install 'managed-tablestore[spark]' (4.0 or later)")
    else:
        yield Check(name="pyspark", status="ok", detail=spark)
    if java is None:
        status: Status = "problem" if spark else "absent"
        yield Check(name="java", status=status, detail="not found, for Spark", fix="install a JDK 17 or later, or set JAVA_HOME")
    elif _numbers(java)[:1] < (OLDEST_JAVA,):
        fix = "install a JDK 17 or later, and point JAVA_HOME at it"
        yield Check(name="java", status="problem" if spark else "warning", detail=java, fix=fix)
    else:
        yield Check(name="java", status="ok", detail=java)
    worker = os.environ.get("PYSPARK_PYTHON")
    if spark and worker and shutil.which(worker) is None:
        yield Check(
            name="PYSPARK_PYTHON", status="problem", detail=f"{worker} cannot be run", fix="set it to a Python with tablestore"
        )
    elif spark and not _has_source(worker or "python3"):
        detail = f"{worker} has no pyspark_tablestore" if worker else "not set, and python3 has no pyspark_tablestore"
        fix = f"Spark's workers run it: export PYSPARK_PYTHON={sys.executable}, or pyspark_tablestore.register(spark) in local mode"
        yield Check(name="PYSPARK_PYTHON", status="warning", detail=detail, fix=fix)


def _has_source(python: str) -> bool:
    """True if Spark's workers find the data source with this interpreter."""
    executable = shutil.which(python)
    if (
        executable is not None
        and os.path.samefile(executable, sys.executable)
        and os.path.dirname(executable) == os.path.dirname(sys.executable)
    ):
        return True
    look = "import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, ('pyspark_tablestore', 'tablestore', 'pyspark'))))"
    try:
        return (
            executable is not None
            and not subprocess.run([executable, "-c", look], capture_output=True, check=False, timeout=30).returncode
        )
    except (OSError, subprocess.SubprocessError):
        return False


def java_version() -> str | None:
    """The version of the Java that Spark would start."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None:
        return None
    try:
        process = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "([^"]+)"', process.stderr + process.stdout)
    return match[1] if match else None


def check_catalog(settings: CatalogSettings) -> Iterator[Check]:
    """The warehouse of a catalog, and the database that keeps its names, if one does (where its tables are made, if need be)."""
    try:
        catalog, settings = open_meta_catalog(settings, SystemIds())
    except ts.UnsupportedError as error:
        yield Check(name="catalog", status="problem", detail=error.message, fix="install the package that is missing")
        return
    assert settings.warehouse is not None, "a catalog in memory has none and is not looked at"
    in_database = settings.metastore == JDBC
    yield from check_warehouse(open_store(settings.warehouse, settings.storage), counts=not in_database)
    if in_database:
        yield _names(catalog, settings.shown()[URI.key])


def _names(catalog: MetaCatalog, where: str) -> Check:
    try:
        databases = catalog.list_databases()
    except ts.TablestoreError as error:
        fix = f"start the database, or correct {URI.key}, {JDBC_USER.key} and {JDBC_PASSWORD.key}"
        return Check(name="names", status="problem", detail=error.message, fix=fix)
    return Check(name="names", status="ok", detail=f"{len(databases)} database(s) in {where}")


def check_warehouse(files: FileStore, *, counts: bool = True) -> Iterator[Check]:
    """True if a warehouse can be reached, written and published to. What is written for that is removed again.

    ``counts``: its directories are its databases.
    """
    where = files.root_uri
    try:
        entries = files.list("")
    except ts.TablestoreError as error:
        yield Check(name="warehouse", status="problem", detail=error.message, fix="check the address, and the rights to list it")
        return
    local = "://" not in where
    if local and not os.path.isdir(where):
        yield Check(
            name="warehouse", status="warning", detail=f"{where} is not there yet", fix="tablestore db create NAME makes it"
        )
        return
    databases = sum(info.is_dir and info.name.endswith(".db") for info in entries)
    yield Check(name="warehouse", status="ok", detail=f"{where}, {databases} database(s)" if counts else where)
    yield _publishing(files)
    if local and (free := shutil.disk_usage(where).free) < LITTLE_SPACE_BYTES:
        yield Check(name="space", status="warning", detail=f"{free >> 20} MB free", fix="make room: writes fail on a full disk")


def _publishing(files: FileStore) -> Check:
    """A commit creates one file if it is absent: the store has to guarantee that."""
    name = "conditional publish"
    if not files.can_publish:
        fix = "use a store that can (local files, S3, Google Cloud, Azure), or a lock: catalog.lock.type and catalog.lock.location"
        return Check(name=name, status="problem", detail="the store cannot create a file only if it is absent", fix=fix)
    path = f"{TEMPORARY_PREFIX}doctor-{SystemIds().uuid()}"
    try:
        first, second = files.publish_if_absent(path, b"first"), files.publish_if_absent(path, b"second")
        content = files.read(path)
    except ts.TablestoreError as error:
        return Check(name=name, status="problem", detail=error.message, fix="check the rights to write")
    finally:
        _remove(files, path)
    if (first, second, content) != (True, False, b"first"):
        fix = "do not write here from two processes: acknowledged rows would be lost; use another store"
        return Check(name=name, status="problem", detail="the store replaced a file that was there", fix=fix)
    return Check(name=name, status="ok", detail="a second writer of one name is refused")


def _remove(files: FileStore, path: str) -> None:
    try:
        files.delete(path)
    except ts.TablestoreError:
        # It is a temporary name: clean-up takes it.
        return


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])
