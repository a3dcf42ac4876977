"""Keeps permanent views and tables with a connector in their catalogs, and reads those that other sessions keep there.

    a view                     its query, its columns, and where its names are filled up
    a table with a connector   its columns, keys and options, as a schema of the format holds them

Both are JSON, parsed again whenever they are read: whoever may write into the warehouse may write any text there. So the query of a
view is one query that reaches nothing but tables, a computed column is one expression over the columns of its table, and a table
with a connector is read or written only where :mod:`tablestore.environment.session.connectoraccess` says so.

A catalog is called differently in each session: in a definition no name stands for the catalog that keeps it.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tablestore.catalog.definitions import DefinitionKind
from tablestore.environment.managed.nonphysical import Unstored, read_unstored, unstored_options
from tablestore.environment.objectpath import ObjectPath, check_whole
from tablestore.environment.session.catalogs import DEFAULT_DATABASE, Catalogs
from tablestore.environment.session.objects import CONNECTOR, ConnectorTable, View
from tablestore.errors import AlreadyExistsError, FormatError, InvalidInputError, TablestoreError
from tablestore.format.limits import parse_json_bounded
from tablestore.format.sealed import JsonObject
from tablestore.names import did_you_mean, is_name
from tablestore.options import KEY_CONSTRAINT, SCHEMA_PREFIX
from tablestore.redaction import HARMLESS, is_harmless, is_telling, shown_option
from tablestore.sql.sqldialect import SqlDialect
from tablestore.types.arrowtypes import fields_from_arrow, to_arrow_schema
from tablestore.types.typestring import field_to_json, parse_field

if TYPE_CHECKING:
    from tablestore.table.catalog import Catalog

# Stored, never renumbered or renamed.
VERSION = 1
_VIEW, _CONNECTOR_TABLE = "view", "connector-table"

KeptObject = ConnectorTable | View


@dataclass(slots=True)
class KeptObjects:
    """The views and tables with a connector that the catalogs of a session keep.

    ``declared``: the texts of those that this very session has created, which it trusts as it trusts its own statements.
    """

    _catalogs: Catalogs
    _declared: dict[ObjectPath, str] = field(default_factory=dict)

    def find(self, path: ObjectPath) -> KeptObject | None:
        """The object of a name; None if no catalog keeps one. Raises FormatError for a definition that is damaged or too new."""
        text = self._text(path)
        if text is None:
            return None
        return decode(path, text, declared=self._declared.get(path) == text)

    def has(self, path: ObjectPath) -> bool:
        """True if a catalog keeps an object of this name."""
        return self._text(path) is not None

    def table(self, path: ObjectPath) -> ConnectorTable | None:
        """The table with a connector of a name."""
        kept = self.find(path)
        return kept if isinstance(kept, ConnectorTable) else None

    def keep(self, kept: KeptObject, *, replace: bool = False) -> None:
        """Keeps an object that this session declares; ``replace``: also in the place of one of its name.

        Raises AlreadyExistsError, NotFoundError, UnsupportedError of a catalog that keeps none, InvalidInputError for an option
        that may hold a secret.
        """
        path = kept.path
        check_whole(path)
        if isinstance(kept, ConnectorTable):
            check_keepable(kept)
        text = encode(kept)
        catalog = self._catalog(path)
        try:
            catalog.keep_definition(path.in_catalog, DefinitionKind.RELATION, text, replace=replace)
        except AlreadyExistsError as error:
            what = "View" if isinstance(kept, View) else "Table"
            raise AlreadyExistsError(f"{what} '{path.quoted}' already exists", kind="table-exists") from error
        self._declared[path] = text

    def alter(self, old: KeptObject, new: KeptObject) -> None:
        """Replaces an object by another one, maybe of a new name. What another session has declared does not become this one's."""
        if isinstance(new, ConnectorTable):
            check_keepable(new)
        text = encode(new)
        catalog = self._catalog(new.path)
        is_declared = self._declared.get(old.path) is not None and old.declared
        if old.path == new.path:
            catalog.keep_definition(new.path.in_catalog, DefinitionKind.RELATION, text, replace=True)
        else:
            catalog.keep_definition(new.path.in_catalog, DefinitionKind.RELATION, text)
            self.drop(old.path)
        if is_declared:
            self._declared[new.path] = text

    def drop(self, path: ObjectPath) -> bool:
        """Removes an object; true if there was one."""
        self._declared.pop(path, None)
        if not self.has(path):
            return False
        return self._catalogs.get(path.catalog).drop_definition(path.in_catalog, DefinitionKind.RELATION)

    def names(self, catalog: str, database: str) -> tuple[str, ...]:
        """The names that a database keeps, ascending; none of a catalog or database that is not there."""
        if catalog not in self._catalogs.names() or not is_name(database):
            return ()
        return self._catalogs.get(catalog).list_definitions(database, DefinitionKind.RELATION)

    def all(self, catalog: str, database: str) -> Iterator[KeptObject]:
        """The objects that a database keeps, by name; those that cannot be read are left out."""
        for name in self.names(catalog, database):
            try:
                kept = self.find(ObjectPath(catalog, database, name))
            except TablestoreError:
                continue
            if kept is not None:
                yield kept

    def _text(self, path: ObjectPath) -> str | None:
        if path.suffix or path.catalog not in self._catalogs.names() or not (is_name(path.database) and is_name(path.name)):
            return None
        return self._catalogs.get(path.catalog).find_definition(path.in_catalog, DefinitionKind.RELATION)

    def _catalog(self, path: ObjectPath) -> "Catalog":
        catalog = self._catalogs.get(path.catalog)
        self._catalogs.check_database(path.catalog, path.database)
        if self._catalogs.is_unmade(path.catalog, path.database):
            catalog.create_database(DEFAULT_DATABASE, ignore_if_exists=True)
        return catalog


def check_keepable(table: ConnectorTable) -> None:
    """Raises InvalidInputError of kind ``secret`` for an option that may hold a secret, which no catalog keeps, and for a computed
    column that its readers would not compute."""
    for key, value in table.options.items():
        if shown_option(key, value) != value:
            near = did_you_mean(key, HARMLESS)
            unknown = (
                "" if is_harmless(key) or is_telling(key) else f" is not known{near} (guides/sql.md lists those), so it"
            )
            raise InvalidInputError(
                f"{table.path}: the option {key!r:.80}{unknown} may hold a secret, and a permanent table is read by all sessions: "
                f"name the secret ('{key:.80}' = 'env:NAME' or 'file:PATH', which each session that allows the table looks up), "
                "or CREATE TEMPORARY TABLE, which ends with the session",
                kind="secret",
            )
    check_computed(table)


def check_computed(table: ConnectorTable) -> None:
    """Raises InvalidInputError for a computed column that is no expression over the columns of its table."""
    unstored = table.unstored or Unstored()
    if not unstored.computed:
        return
    from tablestore.sql.stored.storedexpression import check_expression  # it loads sqlglot

    names = [*(table.schema.names if table.schema is not None else ()), *(one.name for one in unstored.columns if one.metadata)]
    for column in unstored.computed:
        try:
            check_expression(column.expression or "", names)
        except InvalidInputError as error:
            raise InvalidInputError(
                f"{table.path}: the computed column {column.name!r:.80} is one expression over columns of its table, in a "
                f"permanent one: {error.message}",
                kind=error.kind,
            ) from error


def encode(kept: KeptObject) -> str:
    """The text of a definition; the same for the same value."""
    if isinstance(kept, View):
        content: dict[str, object] = {
            "version": VERSION,
            "kind": _VIEW,
            "query": kept.query,
            "dialect": kept.dialect.value,
            "columns": list(kept.columns),
            "comment": kept.comment,
            "catalog": None if kept.catalog == kept.path.catalog else kept.catalog,
            "database": kept.database,
            "options": dict(sorted(kept.options.items())),
        }
    else:
        fields, _ = ((), 0) if kept.schema is None else fields_from_arrow(kept.schema)
        constraint = {} if kept.constraint is None else {KEY_CONSTRAINT: kept.constraint}
        options = {CONNECTOR: kept.connector, **kept.options, **unstored_options(kept.unstored or Unstored()), **constraint}
        content = {
            "version": VERSION,
            "kind": _CONNECTOR_TABLE,
            "fields": [field_to_json(one) for one in fields],
            "partitionKeys": list(kept.partition_by),
            "primaryKeys": list(kept.primary_key),
            "options": dict(sorted(options.items())),
            "comment": kept.comment,
        }
    return json.dumps(content, ensure_ascii=False, indent=2)


def parsed_definition(name: str, text: str) -> JsonObject:
    """The object of a definition. Raises FormatError for what is none, and for one of a newer version."""
    source = JsonObject(parse_json_bounded(text.encode(), f"the definition of {name}"), f"the definition of {name}")
    if (version := source.integer("version")) != VERSION:
        raise FormatError(
            f"{source.name}: expected version {VERSION}, found {version}. Use a newer tablestore to read it.", kind="too-new"
        )
    return source


def decode(path: ObjectPath, text: str, *, declared: bool) -> KeptObject:
    """The object that a text defines. Raises FormatError, UnsupportedError for a type that there is not."""
    source = parsed_definition(str(path), text)
    kind = source.text("kind")
    if kind == _VIEW:
        return View(
            path=path,
            query=source.text("query"),
            dialect=_dialect(source),
            columns=source.text_list("columns"),
            comment=source.optional_text("comment"),
            catalog=source.optional_text("catalog") or path.catalog,
            database=source.text("database"),
            options=source.text_map("options"),
            temporary=False,
            declared=declared,
        )
    if kind != _CONNECTOR_TABLE:
        source.refuse("kind", f"{_VIEW} or {_CONNECTOR_TABLE}", kind)
    options = source.text_map("options")
    items = source.content.get("fields")
    if not isinstance(items, list):
        source.refuse("fields", "a list of columns", items)
    fields = tuple(parse_field(item) for item in items)
    unstored = read_unstored(options, [one.name for one in fields])
    return ConnectorTable(
        path=path,
        connector=_required(source, options, CONNECTOR),
        options=_own(options),
        schema=to_arrow_schema(fields) if fields else None,
        unstored=unstored if unstored != Unstored() else None,
        primary_key=source.text_list("primaryKeys"),
        constraint=options.get(KEY_CONSTRAINT),
        partition_by=source.text_list("partitionKeys"),
        comment=source.optional_text("comment"),
        declared=declared,
    )


def _own(options: Mapping[str, str]) -> dict[str, str]:
    """The options without those that stand for something else."""
    others = (CONNECTOR, KEY_CONSTRAINT)
    return {key: value for key, value in options.items() if key not in others and not key.startswith(SCHEMA_PREFIX)}


def _required(source: JsonObject, options: Mapping[str, str], key: str) -> str:
    if not options.get(key):
        source.refuse(f"options.{key}", "a text", options.get(key))
    return options[key]


def _dialect(source: JsonObject) -> SqlDialect:
    word = source.text("dialect")
    if word not in tuple(SqlDialect):
        source.refuse("dialect", " or ".join(SqlDialect), word)
    return SqlDialect(word)
