"""Joins rows with the rows of a table that have their key, looked up by tasks of any engine.

    driver     prepare_join -> KeyedJoin               once: what is joined, and what comes out
    one task   pin_join -> JoinPin                     once for all tasks that have to see the same rows
    executor   join_batches -> batches                 the given columns, and behind them those that were looked up

A process keeps what it opened (:class:`OpenedJoins`): the list of files of the pinned snapshot, and decoded row groups in scratch
files. So the next keys, and the next snapshot, cost only what is new.

Columns are known by their ids. A table may get columns, and columns may get other names, while a join is in use; a column of it
that is dropped, or has another type, ends it.

Memory: GIVEN_BYTES of given rows, what the look-up holds (:mod:`~tablestore.table.read.keylookup`), and BATCH_BYTES on their way
out.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.bounds import BATCH_BYTES
from tablestore.distributed.spec import TableSpec
from tablestore.errors import ConflictError, InvalidInputError
from tablestore.format.snapshot import Snapshot
from tablestore.names import Names, did_you_mean, names_of
from tablestore.store.context import Shared, TableContext
from tablestore.store.rowview import ReadRules
from tablestore.store.scan.keywindows import WINDOW_KEYS
from tablestore.store.scan.lookupcache import LookupCache
from tablestore.store.schemas import check_is_same
from tablestore.table.read.keylookup import FoundRows, KeyLookup
from tablestore.table.table import Table
from tablestore.types.arrays import Mask, Places, one_chunk
from tablestore.types.arrowtypes import to_arrow_schema, to_arrow_type
from tablestore.types.datatypes import DataType, Field
from tablestore.types.rebatch import rebatched
from tablestore.types.schema import TableSchema

JoinKind = Literal["left", "inner"]
# The bytes of given rows at a time: the more keys are looked up together, the fewer times a row group is read.
GIVEN_BYTES = BATCH_BYTES
# Joins that one process keeps open.
_MOST_OPEN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedJoin:
    """A join by key. ``keys``: given columns and the key columns that they equal. ``columns``: names of what comes out, and
    columns of the table.

    ``how``: ``left`` gives each row once, with nulls where its key is not there; ``inner`` leaves those rows out. ``token`` names
    the join.
    """

    spec: TableSpec
    table_uuid: str | None
    keys: tuple[tuple[str, Field], ...]
    columns: tuple[tuple[str, Field], ...]
    how: JoinKind
    token: str


@dataclass(frozen=True, slots=True)
class JoinPin:
    """The snapshot that is looked into (0: the table has none), and the schema to read it with. ``rules``: those of its catalog
    service for the caller."""

    snapshot_id: int
    schema_id: int
    rules: ReadRules | None = None


def prepare_join(
    table: Table,
    spec: TableSpec,
    row_columns: Sequence[str],
    *,
    on: Names | Mapping[str, str],
    columns: Names | Mapping[str, str] | None = None,
    how: str = "left",
) -> KeyedJoin:
    """A join of rows with the columns ``row_columns``.

    ``on``: names that both sides have, or given columns and the key columns that they equal: the whole primary key. ``columns``:
    names, or new names and the table's; None is all but the key. Raises InvalidInputError.
    """
    schema, where = table.context.schema, f"look-up in table {table.name}"
    if how not in ("left", "inner"):
        raise InvalidInputError(f"{where}: expected how = left or inner, found {how!r}", kind="lookup")
    pairs = _pairs(on)
    _check_keys(schema, pairs, row_columns, where)
    outputs = _pairs([name for name in schema.field_names if name not in pairs.values()] if columns is None else columns)
    for name in outputs.values():
        if name not in schema.field_names:
            raise InvalidInputError(
                f"{where}: the table has no column {name!r}{did_you_mean(name, schema.field_names)}", kind="unknown-column"
            )
    row_names = [name.casefold() for name in row_columns]
    if clash := [out for out in outputs if out.casefold() in row_names]:
        raise InvalidInputError(
            f"{where}: both sides have a column {clash[0]!r}; give the table's another name, with columns = "
            f"{{'table_{clash[0]}': {outputs[clash[0]]!r}, …}}, or leave it out of columns",
            kind="duplicate-column",
        )
    if len({out.casefold() for out in outputs}) < len(outputs):
        raise InvalidInputError(f"{where}: two of the columns {', '.join(outputs)} would have one name", kind="duplicate-column")
    return KeyedJoin(
        spec=spec,
        table_uuid=table.context.table_uuid,
        keys=tuple((name, schema.field(key)) for name, key in pairs.items()),
        columns=tuple((out, schema.field(name)) for out, name in outputs.items()),
        how=how,  # type: ignore[arg-type]
        token=table.context.ids.uuid(),
    )


def pin_join(join: KeyedJoin, shared: Shared | None = None) -> JoinPin:
    """The newest snapshot. Raises ConflictError for a table that is another one, or whose columns are others, than at first."""
    context = (shared or Shared()).once(OpenedJoins).newest(join).ruled()
    context.check_sees_all("looking rows up by their key")
    _at(join, context)
    latest = context.snapshots.latest()
    return JoinPin(latest.id if latest else 0, context.schema.id, context.rules)


def join_batches(
    join: KeyedJoin, pin: JoinPin, batches: Iterable[pa.RecordBatch], shared: Shared | None = None
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """Given rows, and in the same places the rows looked up for them; in another order than they came.

    Raises NotFoundError if the snapshot has expired meanwhile, FormatError for damaged files.
    """
    lookup = (shared or Shared()).once(OpenedJoins).lookup(join, pin)
    names = _at(join, lookup.context)
    for rows in rebatched(batches, max_rows=WINDOW_KEYS, max_bytes=GIVEN_BYTES):
        keys = {names[field.id]: _as_key(rows.column(name), field.type) for name, field in join.keys}
        for given_rows, stored, places in rows_beside(lookup, rows, pa.table(keys)):
            if stored is not None or join.how == "left":
                yield given_rows, _looked_up(join, stored, places)


def rows_beside(
    lookup: KeyLookup, rows: pa.RecordBatch, keys: pa.Table
) -> Iterator[tuple[pa.RecordBatch, pa.Table | None, Places]]:
    """Some of the rows, whose keys are given in the same places, and the places of their rows among some that were found; None for
    those without one. Each row comes once."""
    left = np.ones(rows.num_rows, dtype=np.bool_)
    for hits in lookup.find(keys):
        left[hits.keys] = False
        for at_given, at_row in _rounds(hits):
            yield _rows_at(rows, at_given), hits.rows, at_row
    if left.any():
        missing = np.flatnonzero(left)
        yield _rows_at(rows, missing), None, missing


class OpenedJoins:
    """The tables and look-ups that this process has opened, those of the least recently used join first to go."""

    def __init__(self) -> None:
        self._opened: OrderedDict[str, tuple[TableContext, LookupCache]] = OrderedDict()
        self._lookups: dict[str, tuple[JoinPin, Snapshot | None, KeyLookup]] = {}

    def newest(self, join: KeyedJoin) -> TableContext:
        """The table at the schema that it has now."""
        context, _ = self._open(join)
        return context.at_newest_schema()

    def lookup(self, join: KeyedJoin, pin: JoinPin) -> KeyLookup:
        """Its rows at a snapshot."""
        context, cache = self._open(join)
        context = context.at_schema(context.schemas.read(pin.schema_id)).under(pin.rules)
        # Read each time: a rollback may have put another snapshot in its place.
        snapshot = context.snapshots.read(pin.snapshot_id) if pin.snapshot_id else None
        context.check_is_there()
        cached = self._lookups.get(join.token)
        if cached is not None and cached[:2] == (pin, snapshot):
            return cached[2]
        names = _at(join, context)
        lookup = KeyLookup(context, snapshot, [names[field.id] for _, field in join.columns], cache)
        self._lookups[join.token] = pin, snapshot, lookup
        return lookup

    def _open(self, join: KeyedJoin) -> tuple[TableContext, LookupCache]:
        if join.token not in self._opened:
            context = join.spec.open()
            check_is_same(join.table_uuid, context.schema, table=context.files.root_uri)
            self._opened[join.token] = context, LookupCache()
            while len(self._opened) > _MOST_OPEN:
                oldest, _ = self._opened.popitem(last=False)
                self._lookups.pop(oldest, None)
        self._opened.move_to_end(join.token)
        return self._opened[join.token]


def _pairs(names: Names | Mapping[str, str]) -> dict[str, str]:
    if isinstance(names, Mapping):
        return dict(names)
    return {name: name for name in names_of(names)}


def _check_keys(schema: TableSchema, pairs: Mapping[str, str], row_columns: Sequence[str], where: str) -> None:
    key = ", ".join(schema.primary_keys)
    if not schema.is_keyed:
        raise InvalidInputError(
            f"{where}: the table has no primary key to look rows up by; read it as a DataFrame, and join with that", kind="lookup"
        )
    if sorted(pairs.values()) != sorted(schema.primary_keys):
        raise InvalidInputError(
            f"{where}: expected on to name the whole primary key ({key}), found {', '.join(pairs.values()) or 'nothing'}; for a "
            "join on other columns read the table as a DataFrame, and join with that",
            kind="lookup",
        )
    for name in pairs:
        if row_columns.count(name) != 1:
            fault = "several" if name in row_columns else f"no such column{did_you_mean(name, row_columns)}"
            raise InvalidInputError(
                f"{where}: expected one column {name!r} in the rows, found {fault} (columns: {', '.join(row_columns)})",
                kind="unknown-column",
            )


def _at(join: KeyedJoin, context: TableContext) -> dict[int, str]:
    """The names of the join's columns in a schema, by their ids. Raises ConflictError for columns that are not there."""
    fields = {field.id: field for field in context.schema.fields}
    needed_fields = [*(field for _, field in join.keys), *(field for _, field in join.columns)]
    key = {field.id for _, field in join.keys}
    same_key = {context.schema.field(name).id for name in context.schema.primary_keys} == key
    for field in needed_fields:
        current = fields.get(field.id)
        if current is None or _nullable(current.type) != _nullable(field.type) or not same_key:
            raise ConflictError(
                f"table {context.files.root_uri}: column {field.name!r}, which a look-up reads, was dropped or has another type or "
                "place in the key now; make the look-up anew (a stream goes on with the same checkpoint)",
                kind="schema-changed",
            )
    return {field.id: fields[field.id].name for field in needed_fields}


def _nullable(data_type: DataType) -> DataType:
    return replace(data_type, nullable=True)


def _as_key(array: pa.Array, data_type: DataType) -> pa.Array:
    """The values in the column's canonical type; null for those that it cannot hold, which no key equals."""
    target = to_arrow_type(data_type)
    if array.type == target:
        return array
    cast = pc.cast(array, target, safe=False)
    if pa.types.is_temporal(target):
        same = pc.equal(pc.cast(cast, array.type, safe=False), array)
        return pc.if_else(same, cast, pa.scalar(None, target))
    return cast


def _rounds(hits: FoundRows) -> Iterator[tuple[Places, Places]]:
    """The hits in parts, in none of which a row is repeated so often that it makes more than BATCH_BYTES."""
    most = max(BATCH_BYTES // max(hits.rows.nbytes, 1), 1)
    # Equal places lie side by side: the how-manyth of its row each one is.
    first = np.flatnonzero(np.append(True, hits.places[1:] != hits.places[:-1]))
    counts = np.diff(np.append(first, len(hits.places)))
    if counts.max() <= most:
        yield hits.keys, hits.places
        return
    rounds = (np.arange(len(hits.places)) - np.repeat(first, counts)) // most
    for number in range(int(rounds.max()) + 1):
        chosen: Mask = rounds == number
        yield hits.keys[chosen], hits.places[chosen]


def _looked_up(join: KeyedJoin, rows: pa.Table | None, places: Places) -> pa.RecordBatch:
    fields = to_arrow_schema([field for _, field in join.columns])
    schema = pa.schema([field.with_name(out).with_nullable(True) for (out, _), field in zip(join.columns, fields, strict=True)])
    if rows is None:
        columns = [pa.nulls(len(places), field.type) for field in schema]
    else:
        columns = [one_chunk(column).take(pa.array(places)) for column in rows.columns]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _rows_at(rows: pa.RecordBatch, places: Places) -> pa.RecordBatch:
    return rows if len(places) == rows.num_rows and bool((places[1:] > places[:-1]).all()) else rows.take(pa.array(places))
