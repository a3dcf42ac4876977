"""Implements the factory of tablestore's own tables.

Options of a table: its own, then those of the session (``table-storage.<key>``), then those of the catalog, then the defaults. The
prefix means something in the session only.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tablestore.environment.managed.factory import FILE_PATH, STORAGE_PREFIX, ManagedTableContext
from tablestore.errors import AlreadyExistsError, InvalidInputError
from tablestore.types.partitionspec import PartitionSpec

if TYPE_CHECKING:
    from tablestore.table.creation.stagedtable import StagedTable


class TableStoreFactory:
    """Makes tables through their catalog, which makes directory, log and entry all or nothing."""

    def factory_identifier(self) -> str:
        return ""

    def enrich_options(self, context: ManagedTableContext) -> Mapping[str, str]:
        enriched = dict(context.options)
        for key, value in context.configuration.items():
            # The catalog decides where tables lie: the session's root is the warehouse of its own catalog.
            if key.startswith(STORAGE_PREFIX) and key != STORAGE_PREFIX + FILE_PATH:
                enriched.setdefault(key.removeprefix(STORAGE_PREFIX), value)
        return enriched

    def on_create_table(self, context: ManagedTableContext, ignore_if_exists: bool) -> None:
        _check_place(context)
        try:
            context.catalog.create_table(
                context.path.in_catalog,
                context.fields,
                primary_key=context.primary_key,
                partition_by=context.partition_by,
                options=context.options,
                comment=context.comment,
                ignore_if_exists=ignore_if_exists,
            )
        except AlreadyExistsError as error:
            raise _exists(context, error) from error

    def on_stage_table(self, context: ManagedTableContext, job_id: str) -> "StagedTable":
        _check_place(context)
        try:
            return context.catalog.stage_table(
                context.path.in_catalog,
                context.fields,
                primary_key=context.primary_key,
                partition_by=context.partition_by,
                options=context.options,
                comment=context.comment,
                job_id=job_id,
            )
        except AlreadyExistsError as error:
            raise _exists(context, error) from error

    def on_stage_replacement(self, context: ManagedTableContext, job_id: str, must_exist: bool) -> "StagedTable":
        _check_place(context)
        return context.catalog.stage_replacement(
            context.path.in_catalog,
            context.fields,
            primary_key=context.primary_key,
            partition_by=context.partition_by,
            options=context.options,
            comment=context.comment,
            must_exist=must_exist,
            job_id=job_id,
        )

    def on_drop_table(self, context: ManagedTableContext, ignore_if_not_exists: bool) -> None:
        # The job or workflow that refreshes a materialized table was ended before.
        context.catalog.drop_table(context.path.in_catalog, ignore_if_not_exists=ignore_if_not_exists, materialized=True)

    def on_compact_table(self, context: ManagedTableContext, partition_spec: Sequence[PartitionSpec] | None) -> None:
        pass


def _check_place(context: ManagedTableContext) -> None:
    if (root := context.options.get(FILE_PATH)) is not None:
        raise InvalidInputError(
            f"option {FILE_PATH} = {root!r:.200}: the catalog says where its tables lie; CREATE CATALOG with 'warehouse' = "
            f"{root!r:.200}, and create the table there",
            kind="invalid-option",
        )


def _exists(context: ManagedTableContext, error: AlreadyExistsError) -> AlreadyExistsError:
    """The error in the words of SQL."""
    name = context.path.quoted
    if error.kind != "table-exists":
        return error
    created = "CREATE TEMPORARY TABLE" if context.is_temporary else "CREATE TABLE"
    replaced = "" if context.is_temporary else "CREATE OR REPLACE TABLE replaces it and its rows, "
    return AlreadyExistsError(
        f"table {name} already exists; {created} IF NOT EXISTS takes it as it is, {replaced}DROP TABLE deletes it with its rows; "
        "or choose another name",
        kind=error.kind,
    )
