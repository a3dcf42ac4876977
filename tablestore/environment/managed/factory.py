"""Finds the factory of managed tables: the one with an empty identifier among the entry points
``tablestore.managed_table_factories``.

    CREATE    enrich_options -> on_create_table       the enriched options are what is stored
    COMPACT   on_compact_table -> the compaction
    DROP      on_drop_table, with the stored options

A table is managed if its options have no ``connector`` and its catalog supports managed tables.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from tablestore.environment.objectpath import ObjectPath
from tablestore.errors import UnsupportedError
from tablestore.table.catalog import Catalog
from tablestore.types.datatypes import Field
from tablestore.types.partitionspec import PartitionSpec

if TYPE_CHECKING:
    from tablestore.table.creation.stagedtable import StagedTable

GROUP = "tablestore.managed_table_factories"
STORAGE_PREFIX = "table-storage."
FILE_PATH = "file.path"


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedTableContext:
    """The context that a factory gets of a table. ``configuration``: the settings of the session, with their prefix."""

    path: ObjectPath
    catalog: Catalog
    options: Mapping[str, str]
    fields: tuple[Field, ...] = ()
    primary_key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    comment: str | None = None
    configuration: Mapping[str, str] = field(default_factory=dict)
    is_temporary: bool = False

    def with_options(self, options: Mapping[str, str]) -> "ManagedTableContext":
        """The same table with other options."""
        return replace(self, options=dict(options))


class ManagedTableFactory(Protocol):
    """Makes and removes the storage of managed tables: files, log, and the entry in the catalog, all or nothing."""

    def factory_identifier(self) -> str:
        """The empty text: managed tables name no connector."""
        ...

    def enrich_options(self, context: ManagedTableContext) -> Mapping[str, str]:
        """The options of the table with those of the session where the table's own do not say."""
        ...

    def on_create_table(self, context: ManagedTableContext, ignore_if_exists: bool) -> None:
        """Makes the table with the options of the context. Raises AlreadyExistsError."""
        ...

    def on_drop_table(self, context: ManagedTableContext, ignore_if_not_exists: bool) -> None:
        """Removes the table. Raises NotFoundError."""
        ...

    def on_compact_table(self, context: ManagedTableContext, partition_spec: Sequence[PartitionSpec] | None) -> None:
        """The table, or these partitions, will be compacted; what this raises refuses it."""
        ...


@runtime_checkable
class StagesTables(Protocol):
    """A factory that also makes tables which nobody sees before they are whole."""

    def on_stage_table(self, context: ManagedTableContext, job_id: str) -> "StagedTable":
        """Begins a table with the options of the context, for a job. Raises AlreadyExistsError."""
        ...

    def on_stage_replacement(self, context: ManagedTableContext, job_id: str, must_exist: bool) -> "StagedTable":
        """Begins what takes the place of a table when it is whole, for a job. Raises NotFoundError if it ``must_exist``."""
        ...


def discover_factory() -> ManagedTableFactory:
    """The factory of managed tables. Raises UnsupportedError unless there is exactly one."""
    factories: list[tuple[str, ManagedTableFactory]] = []
    for point in entry_points(group=GROUP):
        try:
            factory = point.load()()
        except ImportError as error:
            raise UnsupportedError(
                f"the managed table factory {point.value} does not load ({error}); install its package again, or remove it",
                kind="managed-table-factory",
            ) from error
        if factory.factory_identifier() == "":
            factories.append((point.value, factory))
    if len(factories) != 1:
        names = (
            ", ".join(sorted(name for name, _ in factories)) or "none; install tablestore again, so that its entry points are known"
        )
        raise UnsupportedError(
            f"expected exactly one managed table factory (entry points {GROUP!r}), found {len(factories)}: {names}",
            kind="managed-table-factory",
        )
    return factories[0][1]
