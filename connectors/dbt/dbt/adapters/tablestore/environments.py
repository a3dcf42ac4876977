"""Keeps environments of tablestore for the threads of dbt: one is used by one thread at a time, and by the next one afterwards.

An environment is not safe for threads, and opening one takes a while; so a connection that dbt closes hands its environment back.
What a model that failed left in it, a temporary view at most, is replaced by the next run of that model.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from dbt.adapters.tablestore.credentials import TablestoreCredentials

import tablestore as ts

# Two threads start one Spark.
_STARTING = Lock()


@dataclass
class EnvironmentPool:
    """The environments of one profile."""

    credentials: TablestoreCredentials
    _free: list[ts.TableEnvironment] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    def take(self) -> ts.TableEnvironment:
        """An environment that no thread uses. Raises TablestoreError."""
        with self._lock:
            if self._free:
                return self._free.pop()
        return open_environment(self.credentials)

    def give_back(self, environment: ts.TableEnvironment) -> None:
        """Takes back an environment that is of use to the next thread."""
        with self._lock:
            self._free.append(environment)

    def close(self) -> None:
        """Closes those that no thread uses."""
        with self._lock:
            free, self._free = self._free, []
        for environment in free:
            environment.close()


def open_environment(credentials: TablestoreCredentials) -> ts.TableEnvironment:
    """Opens an environment as a profile says. Raises TablestoreError."""
    # A statement that builds a table leaves nothing behind where it fails; what the profile says comes first.
    config = {
        "table.ctas.atomicity-enabled": "true",
        # Its progress would come between the lines of dbt.
        **({"enable_progress_bar": "false"} if credentials.engine == "duckdb" else {}),
        **{key: _text(value) for key, value in credentials.config.items()},
    }
    environment = ts.TableEnvironment.create(
        credentials.own_catalog,
        engine=credentials.engine,
        spark=_spark_session(credentials) if credentials.engine == "spark" else None,
        catalogs=_catalogs(credentials.catalogs),
        config=config,
    )
    environment.use_catalog(credentials.database)
    return environment


def _catalogs(sources: Mapping[str, Any]) -> dict[str, Any]:
    return {name: source if isinstance(source, str) else dict(source) for name, source in sources.items()}


def _text(value: Any) -> str:
    # YAML reads true as a truth value, and the settings of SQL are texts.
    return str(value).lower() if isinstance(value, bool) else str(value)


def _spark_session(credentials: TablestoreCredentials) -> Any:
    """The session of Spark that the threads share: it lasts as long as the process, and no environment ends it."""
    # Of the extra spark.
    from pyspark.sql import SparkSession
    from pyspark_tablestore.query.sparksession import own_session, running_session

    settings = {key: _text(value) for key, value in credentials.spark_config.items()}
    with _STARTING:
        if credentials.remote:
            return SparkSession.builder.remote(credentials.remote).config(map={**settings}).getOrCreate()
        master = {} if credentials.master is None else {"spark.master": credentials.master}
        return running_session() or own_session({**master, **settings})
