"""Reads partitions, as a statement writes them, as values of a table's partition columns."""

from collections.abc import Mapping

from tablestore.environment.source import Source
from tablestore.errors import InvalidInputError, TablestoreError
from tablestore.names import did_you_mean
from tablestore.table.table import Table
from tablestore.types.partitionspec import parse_partition_value


def partition_of(table: Table, value_texts: Mapping[str, str | None], source: Source) -> dict[str, object]:
    """The values. Raises InvalidInputError for a column that is none of the partition's, and for a value that does not fit."""
    values: dict[str, object] = {}
    for name, text in value_texts.items():
        if name not in table.partition_by:
            listed_columns = ", ".join(table.partition_by) or "none, the table is not partitioned"
            raise InvalidInputError(
                source.mark(
                    f"PARTITION ({name} = …): expected a partition column of {table.name} "
                    f"({listed_columns}){did_you_mean(name, table.partition_by)}",
                    source.word(name),
                ),
                kind="unknown-partition-column",
            )
        try:
            values[name] = None if text is None else parse_partition_value(table.table_schema, name, text)
        except TablestoreError as error:
            source.place(error, source.word(text or name))
            raise
    if not values:
        raise InvalidInputError(f"expected the values of some partition columns of {table.name}, found none", kind="partition")
    return values
