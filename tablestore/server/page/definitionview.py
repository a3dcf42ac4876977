"""Views the definition of a table: options with their defaults, the statement that makes one like it, its schemas; and its readers.

Beside the readers stands who may do what, where the service knows it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tablestore.errors import TablestoreError, UnsupportedError
from tablestore.options import TABLE_OPTIONS, is_materialized, is_table_option
from tablestore.redaction import shown_options
from tablestore.server.access.roles import Resource
from tablestore.server.page.listpart import ListPart, part_of
from tablestore.server.page.pagecontext import AccessLine, PageContext
from tablestore.server.page.tableview import TableHead, head_of
from tablestore.store.history.consumers import is_reserved
from tablestore.table.table import Table
from tablestore.tableenvironment import TableEnvironment
from tablestore.types.typestring import quote_identifier, type_to_sql

SCHEMAS_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionLine:
    """One option. ``default``: what counts where nobody sets it, empty for nothing; ``is_set``: the table says it."""

    key: str
    value: str
    default: str
    is_set: bool
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaLine:
    """One schema that the table has had."""

    id: int
    time_ms: int
    columns: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionView:
    """The page of the definition. ``statement``: SHOW CREATE, or ``statement_error`` why there is none."""

    head: TableHead
    set_options: tuple[OptionLine, ...]
    default_options: tuple[OptionLine, ...]
    statement: str | None
    statement_error: str | None
    schemas: tuple[SchemaLine, ...]
    schema_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerLine:
    """One consumer; ``lag``: snapshots that it has not read. ``own``: the table's own hold, not a user's."""

    id: str
    next_snapshot: int
    lag: int
    moved_ms: int
    own: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicLine:
    """One bucket of a topic: up to which snapshot it holds the changes, and what it lacks."""

    bucket: int
    published: int
    end_offset: int
    lag_snapshots: int
    lag_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadersView:
    """The page of who follows a table, and who may do what. ``unpublished``: snapshots that the topic lacks by the progress on
    record, None where there is no topic; ``grants``: None where nothing is known of them."""

    head: TableHead
    latest_snapshot: int | None
    consumers: ListPart[ConsumerLine]
    log_system: str
    topic: str | None
    unpublished: int | None
    buckets: tuple[TopicLine, ...]
    topic_error: str | None
    grants: tuple[AccessLine, ...] | None


def view_definition(context: PageContext) -> DefinitionView:
    """The definition of the table of the path. Raises NotFoundError, FormatError."""
    table = context.table()
    options = tuple(_options(table))
    statement, error = _statement(context, table)
    ids = table.context.schemas.ids()
    schemas = [table.context.schemas.read(number) for number in reversed(ids[-SCHEMAS_SHOWN:])]
    return DefinitionView(
        head=head_of(context, table),
        set_options=tuple(line for line in options if line.is_set),
        default_options=tuple(line for line in options if not line.is_set),
        statement=statement,
        statement_error=error,
        schemas=tuple(
            SchemaLine(
                id=schema.id,
                time_ms=schema.time_millis,
                columns=", ".join(f"{field.name} {type_to_sql(field.type)}" for field in schema.fields),
            )
            for schema in schemas
        ),
        schema_count=len(ids),
    )


def view_readers(context: PageContext) -> ReadersView:
    """The readers of the table of the path; with ``topic`` in the query its broker is asked how far the topic is.

    Raises NotFoundError, InvalidInputError.
    """
    table, database = context.table(), context.names["database"]
    latest = table.context.snapshots.latest()
    newest = latest.id if latest else 0
    lines = [
        ConsumerLine(
            id=one.id,
            next_snapshot=one.next_snapshot,
            lag=max(newest + 1 - one.next_snapshot, 0),
            moved_ms=one.modified_ms,
            own=is_reserved(one.id),
        )
        for one in sorted(table.consumers(), key=lambda one: (one.next_snapshot, one.id))
    ]
    settings, unpublished, error = None, None, None
    buckets: tuple[TopicLine, ...] = ()
    try:
        settings = table.change_log.settings
        unpublished = table.change_log.unpublished()
        if context.query.get("topic"):
            status = table.change_log.status(count_records=False)
            buckets = tuple(
                TopicLine(
                    bucket=one.bucket,
                    published=one.published,
                    end_offset=one.end_offset,
                    lag_snapshots=one.lag_snapshots,
                    lag_seconds=one.lag_seconds,
                )
                for one in status.buckets
            )
            error = status.problem
    except UnsupportedError:
        pass
    except TablestoreError as failure:
        error = failure.message
    plain = context.names["table"].partition("$")[0]
    grants = None if context.grants is None else tuple(context.grants(Resource(database, plain)))
    return ReadersView(
        head=head_of(context, table),
        latest_snapshot=latest.id if latest else None,
        consumers=part_of(lines, context.number("page"), 100),
        log_system="filestore" if settings is None or unpublished is None else settings.system,
        topic=None if settings is None or unpublished is None else settings.topic,
        unpublished=unpublished,
        buckets=buckets,
        topic_error=error,
        grants=grants,
    )


def _options(table: Table) -> Iterator[OptionLine]:
    stored = shown_options(table.options(), is_table_option)
    for key in sorted({*stored, *TABLE_OPTIONS}):
        option = TABLE_OPTIONS.get(key)
        default = "" if option is None else _default_text(option.default)
        yield OptionLine(
            key=key,
            value=stored.get(key, default),
            default=default,
            is_set=key in stored,
            sentence="" if option is None else option.sentence,
        )


def _default_text(value: object) -> str:
    match value:
        case None | ():
            return ""
        case bool():
            return str(value).lower()
        case tuple():
            return ",".join(map(str, value))
    return str(value)


def _statement(context: PageContext, table: Table) -> tuple[str | None, str | None]:
    kind = "MATERIALIZED TABLE" if is_materialized(table.options()) else "TABLE"
    name = ".".join(quote_identifier(context.names[key]) for key in ("database", "table"))
    try:
        with TableEnvironment.create(context.catalog) as environment:
            return environment.execute_sql(f"SHOW CREATE {kind} {name}").text, None
    except TablestoreError as error:
        return None, error.message
