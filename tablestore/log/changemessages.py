"""Encodes the messages of a changelog topic and decodes them.

    key     null without a primary key, else the primary key as a JSON object
    value   upsert    +I, +U   a row added
                      -D       null (a tombstone: the key says which row)
                      -U       no message
            all       +I, +U   a row added
                      -U, -D   a row taken back

    format           a row added                                  a row taken back
    debezium-json    {"before":null,"after":{row},"op":"c"}       {"before":{row},"after":null,"op":"d"}
    canal-json       {"data":[{row}],"type":"INSERT"}             {"data":[{row}],"type":"DELETE"}
    json             {row}                                        none: upsert logs and append tables need none
    avro             the columns as an Avro record, bare          none

When reading, Debezium's own ``r`` (a row of a first copy) and ``u`` (before and after in one message) are taken too, and a
message without ``before`` or ``after`` where it needs none. Whole batches are encoded and decoded at once, but for Avro, whose
reader and writer take one record at a time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import FormatError, InvalidInputError
from tablestore.json.jsonlayout import rows_alike
from tablestore.json.jsonrows import BadJson, rows_from_json
from tablestore.json.jsontext import concat, rows_to_json
from tablestore.types.arrays import Kinds, Places, is_true, one_chunk
from tablestore.types.requiredfields import cast_required
from tablestore.types.rowkind import RowKind

ChangelogMode = Literal["upsert", "all"]
LogFormat = Literal["debezium-json", "canal-json", "json", "avro"]
# These say nothing but the row: it is added.
ROW_FORMATS = frozenset({"json", "avro"})

_INSERTS = ("c", "r")
_MANY = 100


@dataclass(frozen=True, slots=True)
class _Envelope:
    """The text around the row of a message: ``head`` and ``tail`` of a row added, ``old_head`` and ``old_tail`` of one taken
    back."""

    head: bytes
    tail: bytes
    old_head: bytes = b""
    old_tail: bytes = b""


_ENVELOPES = {
    "debezium-json": _Envelope(b'{"before":null,"after":', b',"op":"c"}', b'{"before":', b',"after":null,"op":"d"}'),
    "canal-json": _Envelope(b'{"data":[', b'],"type":"INSERT"}', b'{"data":[', b'],"type":"DELETE"}'),
    "json": _Envelope(b"", b""),
}
# The most text of a message around its row.
ENVELOPE_BYTES = max(
    len(head) + len(tail) for e in _ENVELOPES.values() for head, tail in ((e.head, e.tail), (e.old_head, e.old_tail))
)


class BadMessage(FormatError):
    """A message that cannot be understood: the one at ``position``, for the ``reason``."""

    default_kind = "bad-record"

    def __init__(self, message: str, *, kind: str | None = None, position: int = 0, reason: str = "") -> None:
        super().__init__(message, kind=kind)
        self.position, self.reason = position, reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Messages:
    """Encoded changes. ``places``: which row of the batch each message stands for."""

    places: Places
    kinds: Kinds
    keys: list[bytes | None]
    values: list[bytes | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedChanges:
    """Decoded messages. ``places``: which message each row came from. Of a tombstone only the key columns are set."""

    places: Places
    kinds: Kinds
    rows: pa.Table


def encode_changes(
    rows: pa.Table, kinds: Kinds, *, key: Sequence[str], mode: ChangelogMode, form: LogFormat = "debezium-json"
) -> Messages:
    """The messages of a batch of changes, in its order. ``kinds`` are row kind codes; ``key`` is empty without a primary key.

    Raises InvalidInputError (``log-format``) for a row taken back, where the format has no message for it.
    """
    places: Places = np.arange(rows.num_rows, dtype=np.int64)
    if mode == "upsert":
        kept_rows = kinds != RowKind.UPDATE_BEFORE
        if not kept_rows.all():
            places, kinds, rows = places[kept_rows], kinds[kept_rows], rows.filter(pa.array(kept_rows))
    columns = {name: one_chunk(rows.column(name)) for name in rows.schema.names}
    adds = (kinds == RowKind.INSERT) | (kinds == RowKind.UPDATE_AFTER)
    keys: list[bytes | None] = [None] * rows.num_rows
    if key:
        keys = _as_bytes(rows_to_json([columns[name] for name in key], list(key)))
    if rows.num_rows == 0:
        return Messages(places=places, kinds=kinds, keys=[], values=[])
    mask = pa.array(adds)
    if form in ROW_FORMATS and mode == "all" and not adds.all():
        symbol = RowKind(int(kinds[~adds][0])).symbol
        raise InvalidInputError(
            f"a log with log.format = {form} holds rows that are added, found a change {symbol}; set log.format = debezium-json",
            kind="log-format",
        )
    values = _avro_values(columns, adds) if form == "avro" else _as_bytes(_json_values(columns, mask, _ENVELOPES[form]))
    if mode == "upsert" and not adds.all():
        values = [value if added else None for value, added in zip(values, adds.tolist(), strict=True)]
    return Messages(places=places, kinds=kinds, keys=keys, values=values)


def _json_values(columns: Mapping[str, pa.Array], adds: pa.Array, envelope: _Envelope) -> pa.Array:
    texts = rows_to_json(list(columns.values()), list(columns))
    if adds.true_count == len(adds):
        return concat(envelope.head.decode(), texts, envelope.tail.decode())
    opening = pc.if_else(adds, envelope.head.decode(), envelope.old_head.decode())
    closing = pc.if_else(adds, envelope.tail.decode(), envelope.old_tail.decode())
    return concat(opening, texts, closing)


def avro_schema(columns: pa.Schema) -> str:
    """The schema of messages in Avro, as JSON."""
    from tablestore.format.datafiles.avrorows import AvroRows

    return AvroRows(columns).schema_text


def _avro_values(columns: Mapping[str, pa.Array], adds: npt.NDArray[np.bool_]) -> list[bytes | None]:
    from tablestore.format.datafiles.avrorows import AvroRows

    rows = pa.table(dict(columns))
    values: list[bytes | None] = [None] * rows.num_rows
    added = np.flatnonzero(adds)
    for place, value in zip(added.tolist(), AvroRows(rows.schema).encode(rows.take(pa.array(added))), strict=True):
        values[place] = value
    return values


def decode_changes(
    keys: Sequence[bytes | None],
    values: Sequence[bytes | None],
    schema: pa.Schema,
    *,
    key: Sequence[str],
    kinds: Kinds | None = None,
    form: LogFormat = "debezium-json",
    written: pa.Schema | None = None,
) -> DecodedChanges:
    """The changes that messages stand for, in their order, with the columns of ``schema``.

    ``kinds``: what the writer said of each message beside it (-1: nothing), which tells +U from +I. ``written``: all columns that
    messages in Avro have, if not those of ``schema``. Raises :class:`BadMessage` that names the first message that cannot be
    understood.
    """
    reader = _Reader(schema=schema, key=key, form=form, written=schema if written is None else written)
    # Mostly all are there, and this is told faster than they are looked through.
    texts = cast("Sequence[bytes]", values) if all(values) else [value for value in values if value is not None]
    if len(texts) == len(values):
        full_only = reader.read(texts, np.arange(len(values)))
        if kinds is None or (kinds < 0).all():
            return full_only
        return replace(full_only, kinds=_checked_kinds(kinds, full_only.places, full_only.kinds))
    full = np.fromiter((value is not None for value in values), dtype=np.bool_, count=len(values))
    with_value, without = np.flatnonzero(full), np.flatnonzero(~full)
    parts = [
        reader.read(texts, with_value),
        _decode_tombstones([keys[i] for i in without.tolist()], without, schema, key),
    ]
    places = np.concatenate([part.places for part in parts])
    message_kinds = np.concatenate([part.kinds for part in parts])
    order = np.argsort(places, kind="stable")
    rows = pa.concat_tables([part.rows for part in parts])
    if len(without):
        rows = rows.take(pa.array(order))
    places, message_kinds = places[order], message_kinds[order]
    return DecodedChanges(
        places=places, kinds=message_kinds if kinds is None else _checked_kinds(kinds, places, message_kinds), rows=rows
    )


def _checked_kinds(kinds: Kinds, places: Places, message_kinds: Kinds) -> Kinds:
    """The writer's own word, where it does not contradict the message: a row added stays added."""
    writer_kinds = kinds[places]
    result: Kinds = np.where(
        (writer_kinds >= 0) & (_adds(writer_kinds) == _adds(message_kinds)), writer_kinds, message_kinds
    ).astype(np.int8)
    return result


def _adds(kinds: Kinds) -> npt.NDArray[np.bool_]:
    # -U and -D have odd codes.
    adds: npt.NDArray[np.bool_] = (kinds & 1) == 0
    return adds


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    """Reads the values of messages. ``schema``: the columns of the rows; ``written``: those of messages in Avro."""

    schema: pa.Schema
    key: Sequence[str]
    form: LogFormat
    written: pa.Schema

    def read(self, texts: Sequence[bytes], where: Places) -> DecodedChanges:
        """The changes of values at ``where``."""
        if not texts:
            return DecodedChanges(places=where, kinds=_inserts(0), rows=_nullable(self.schema).empty_table())
        if self.form == "avro":
            return self._read_avro(texts, where)
        if (rows := self._added(texts)) is not None:
            return DecodedChanges(places=where, kinds=_inserts(len(texts)), rows=rows)
        if self.form == "json":
            return _with_key(_parsed(texts, self.schema, where), _inserts(len(texts)), where, self.key)
        row = pa.struct([field.with_nullable(True) for field in self.schema])
        if self.form == "canal-json":
            return self._read_canal(_parsed(texts, pa.schema([("data", pa.list_(row)), ("type", pa.string())]), where), where)
        return self._read_debezium(_parsed(texts, pa.schema([("before", row), ("after", row), ("op", pa.string())]), where), where)

    def _added(self, texts: Sequence[bytes]) -> pa.Table | None:
        """The rows of messages that are all rows added as :func:`encode_changes` writes them; None if they are not."""
        envelope = _ENVELOPES[self.form]
        # A JSON reader makes rows of few messages faster than they are compared.
        rows = rows_alike(texts, self.schema, head=envelope.head, tail=envelope.tail) if len(texts) >= _MANY else None
        if rows is None:
            rows = self._added_rows(texts, envelope)
        return None if rows is None or any(rows.column(name).null_count for name in self.key) else rows

    def _added_rows(self, texts: Sequence[bytes], envelope: _Envelope) -> pa.Table | None:
        head, tail = len(envelope.head), len(envelope.tail)
        if not all(text.startswith(envelope.head) and text.endswith(envelope.tail) for text in texts):
            return None
        try:
            return rows_from_json([text[head : len(text) - tail] for text in texts], self.schema)
        except BadJson:
            # Said better with the whole message in view.
            return None

    def _read_avro(self, texts: Sequence[bytes], where: Places) -> DecodedChanges:
        from tablestore.format.datafiles.avrorows import AvroRows, BadAvro

        try:
            rows = AvroRows(self.written).decode(texts, self.schema.names)
        except BadAvro as error:
            raise _bad(int(where[error.position]), error.reason) from error
        columns = [_as_declared(one_chunk(rows.column(field.name)), field, where) for field in self.schema]
        table = pa.Table.from_arrays(columns, schema=_nullable(self.schema))
        return _with_key(table, _inserts(len(texts)), where, self.key)

    def _read_canal(self, parsed: pa.Table, where: Places) -> DecodedChanges:
        types, data = one_chunk(parsed.column("type")), one_chunk(parsed.column("data"))
        inserts, deletes = is_true(pc.equal(types, "INSERT")), is_true(pc.equal(types, "DELETE"))
        _refuse(~(inserts | deletes), where, "expected type INSERT or DELETE", types, name="type")
        single = is_true(pc.equal(pc.list_value_length(data), 1))
        _refuse(~single, where, "expected one row in `data`", types, name="type")
        rows = data.flatten()
        _refuse(~is_true(rows.is_valid()), where, "expected one row in `data`, found null", types, name="type")
        kinds = np.where(deletes, int(RowKind.DELETE), int(RowKind.INSERT)).astype(np.int8)
        return _with_key(pa.Table.from_struct_array(rows), kinds, where, self.key)

    def _read_debezium(self, parsed: pa.Table, where: Places) -> DecodedChanges:
        ops = one_chunk(parsed.column("op"))
        before, after = one_chunk(parsed.column("before")), one_chunk(parsed.column("after"))
        inserts = is_true(pc.is_in(ops, value_set=pa.array(_INSERTS)))
        updates, deletes = is_true(pc.equal(ops, "u")), is_true(pc.equal(ops, "d"))
        has_before, has_after = is_true(before.is_valid()), is_true(after.is_valid())
        _refuse(~(inserts | updates | deletes), where, "expected op c, r, u or d", ops)
        _refuse((inserts | updates) & ~has_after, where, "expected the new row in `after`, found none", ops)
        _refuse(deletes & ~has_before, where, "expected the old row in `before`, found none", ops)
        takes_before = deletes | (updates & has_before)
        old, new = np.flatnonzero(takes_before), np.flatnonzero(inserts | updates)
        rows = pa.concat_arrays([before.take(pa.array(old)), after.take(pa.array(new))])
        places = np.concatenate([old, new])
        kinds = np.concatenate(
            [
                np.where(deletes[old], int(RowKind.DELETE), int(RowKind.UPDATE_BEFORE)),
                np.where(inserts[new], int(RowKind.INSERT), int(RowKind.UPDATE_AFTER)),
            ]
        ).astype(np.int8)
        # Stable: of an update the row before comes first.
        order = np.argsort(places, kind="stable")
        table = pa.Table.from_struct_array(rows.take(pa.array(order)))
        return _with_key(table, kinds[order], where[places[order]], self.key)


def _as_declared(column: pa.Array, field: pa.Field, where: Places) -> pa.Array:
    """A column of messages at ``where`` in the type of the table. Raises BadMessage for a null in a field that is NOT NULL."""
    try:
        return cast_required(column, field.type)
    except ValueError as error:
        for place, position in enumerate(where.tolist()):
            # Alone, the first wrong one is known.
            try:
                cast_required(column.take(pa.array([place])), field.type)
            except ValueError as cause:
                raise _bad(position, f"column {field.name!r}: {cause}") from error
        raise


def _with_key(table: pa.Table, kinds: Kinds, where: Places, key: Sequence[str]) -> DecodedChanges:
    """The changes of messages at ``where``. Raises BadMessage for a row without its key."""
    for name in key:
        missing = is_true(pc.is_null(one_chunk(table.column(name))))
        _refuse(missing, where, f"expected a value in the key column {name!r}, found null", None)
    return DecodedChanges(places=where, kinds=kinds, rows=table)


def _nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in schema])


def _inserts(count: int) -> Kinds:
    return np.full(count, int(RowKind.INSERT), dtype=np.int8)


def _parsed(texts: Sequence[bytes], envelope: pa.Schema, where: Places) -> pa.Table:
    try:
        return rows_from_json(texts, envelope)
    except BadJson as error:
        raise _bad(int(where[error.position]), error.reason) from error


def _decode_tombstones(keys: Sequence[bytes | None], where: Places, schema: pa.Schema, key: Sequence[str]) -> DecodedChanges:
    fields = [schema.field(name) for name in key]
    for position, text in enumerate(keys):
        if text is None or not key:
            raise _bad(int(where[position]), "expected a value, or a key that says which row was deleted; found neither")
    try:
        parsed = rows_from_json([text for text in keys if text is not None], pa.schema(fields))
    except BadJson as error:
        raise _bad(int(where[error.position]), error.reason) from error
    columns = [parsed.column(f.name) if f.name in key else pa.nulls(len(keys), f.type) for f in schema]
    for name in key:
        _refuse(is_true(pc.is_null(one_chunk(parsed.column(name)))), where, f"expected the key column {name!r}, found null", None)
    return DecodedChanges(
        places=where,
        kinds=np.full(len(keys), int(RowKind.DELETE), dtype=np.int8),
        rows=pa.Table.from_arrays(columns, schema=_nullable(schema)),
    )


def _refuse(wrong: npt.NDArray[np.bool_], where: Places, reason: str, ops: pa.Array | None, *, name: str = "op") -> None:
    if wrong.any():
        position = int(np.argmax(wrong))
        op_text = "" if ops is None else f" ({name} {ops[position].as_py()!r})"
        raise _bad(int(where[position]), reason + op_text)


def _bad(position: int, reason: str) -> BadMessage:
    return BadMessage(f"message {position}: {reason}", position=position, reason=reason)


def _as_bytes(texts: pa.Array) -> list[bytes | None]:
    values: list[bytes | None] = texts.cast(pa.binary()).to_pylist()
    return values
