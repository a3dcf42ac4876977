"""Declares the profile: a warehouse, the engine that runs the queries, and the settings of its sessions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dbt.adapters.contracts.connection import Credentials
from dbt_common.exceptions import DbtRuntimeError

DEFAULT_CATALOG = "tablestore"
ENGINES = ("duckdb", "spark")


@dataclass
class TablestoreCredentials(Credentials):
    """The fields of a target of ``profiles.yml``.

    ``warehouse`` is the catalog ``tablestore``, with the options of a catalog in ``options``; ``catalogs`` are more of them, by
    name. ``database`` is the catalog that models are built in, ``schema`` its database. ``config`` are settings of SQL. Of Spark,
    ``remote`` names a server of Spark Connect, ``master`` where Spark runs otherwise, and ``spark_config`` its settings.
    """

    database: str = DEFAULT_CATALOG
    schema: str = "default"
    warehouse: str | None = None
    engine: str = "duckdb"
    options: dict[str, Any] = field(default_factory=dict)
    catalogs: dict[str, Any] = field(default_factory=dict)
    config: dict[str, str] = field(default_factory=dict)
    remote: str | None = None
    master: str | None = None
    spark_config: dict[str, str] = field(default_factory=dict)

    _ALIASES = {"catalog": "database"}  # noqa: RUF012, what dbt declares as a class variable

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise DbtRuntimeError(f"profile: expected duckdb or spark as engine, found '{self.engine}'")
        if self.warehouse is None and "warehouse" not in self.options and not self.catalogs:
            raise DbtRuntimeError(
                "profile: expected a warehouse (a folder or a URL), found none; add warehouse: /path/to/warehouse"
            )
        if self.engine != "spark" and (self.remote or self.master or self.spark_config):
            raise DbtRuntimeError("profile: remote, master and spark_config are of the engine spark; add engine: spark")
        known = {*self.catalogs, *([] if self.own_catalog is None else [DEFAULT_CATALOG])}
        if self.database not in known:
            raise DbtRuntimeError(
                f"profile: expected one of the catalogs as database, found '{self.database}' (known: {', '.join(sorted(known))})"
            )

    @property
    def type(self) -> str:
        """The name of the adapter."""
        return "tablestore"

    @property
    def unique_field(self) -> str:
        """The text by whose hash dbt counts users."""
        return str(self.warehouse or sorted(self.catalogs))

    @property
    def own_catalog(self) -> Mapping[str, Any] | None:
        """The options of the catalog ``tablestore``; None where all catalogs have names of their own."""
        if self.warehouse is None and not self.options:
            return None
        return {**({} if self.warehouse is None else {"warehouse": self.warehouse}), **self.options}

    def _connection_keys(self) -> tuple[str, ...]:
        # What `dbt debug` shows: nothing that may hold a secret.
        return ("database", "schema", "warehouse", "engine", "remote", "master")
