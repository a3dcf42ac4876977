"""Describes what is moved between tables, topics and folders as jobs of lineage."""

from tablestore.brokers import DEFAULT_PORT, parse_brokers
from tablestore.redaction import without_secrets
from tablestore.table.table import Table
from tablestore.telemetry.lineage import ColumnSources, ColumnUse, How, LineageDataset, LineageJob
from tablestore.types.typestring import type_to_sql


def table_dataset(table: Table, location: str | None = None) -> LineageDataset:
    """A managed table; ``location``: where it will lie."""
    columns = tuple((field.name, type_to_sql(field.type)) for field in table.table_schema.fields)
    return LineageDataset(location=location or table.location, name=table.name, columns=columns)


def topic_dataset(name: str, servers: str | None) -> LineageDataset:
    """A topic, at the first of its brokers. Raises InvalidInputError for what is no address of one."""
    brokers = parse_brokers(servers or "")
    host = f"{brokers[0].host}:{brokers[0].port or DEFAULT_PORT}" if brokers else "localhost"
    return LineageDataset(location=f"kafka://{host}/{name}")


def folder_dataset(location: str) -> LineageDataset:
    """A folder of files."""
    return LineageDataset(location=without_secrets(location))


def ingest_job(topic: LineageDataset, table: Table, *, follow: bool) -> LineageJob:
    """A topic that comes into a table. Which member of a record a column is from is not known beforehand."""
    return LineageJob(operation="INGEST", inputs=(topic,), output=table_dataset(table), is_stream=follow)


def delivery_job(table: Table, output: LineageDataset, columns: tuple[str, ...] | None, *, follow: bool) -> LineageJob:
    """Rows of a table that go elsewhere, as they are."""
    source = table_dataset(table)
    names = tuple(table.schema.names) if columns is None else columns
    sources = ColumnSources(columns={name: (ColumnUse(source, name, How.IDENTITY),) for name in names})
    return LineageJob(operation="DELIVER", inputs=(source,), output=output, sources=sources, is_stream=follow)
