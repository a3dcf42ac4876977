"""Encodes the messages of a changelog topic, as Debezium JSON, and decodes them.

    key     null without a primary key, else the primary key as a JSON object
    value   upsert    +I, +U   {"before":null,"after":{row},"op":"c"}
                      -D       null (a tombstone: the key says which row)
                      -U       no message
            all       +I, +U   {"before":null,"after":{row},"op":"c"}
                      -U, -D   {"before":{row},"after":null,"op":"d"}

When reading, Debezium's own ``r`` (a row of a first copy) and ``u`` (before and after in one message) are taken too, and a
message without ``before`` or ``after`` where it needs none. Whole batches are encoded and decoded at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.json.jsonlayout import rows_alike
from tablestore.json.jsonrows import BadJson, rows_from_json
from tablestore.json.jsontext import concat, rows_to_json
from tablestore.types.arrays import Kinds, Places, is_true, one_chunk
from tablestore.types.rowkind import RowKind

ChangelogMode = Literal["upsert", "all"]

_INSERTS = ("c", "r")
_MANY = 100
_ADDED_HEAD, _ADDED_TAIL = b'{"before":null,"after":', b',"op":"c"}'
# The text of a message around its row, whatever its kind.
ENVELOPE_BYTES = len(_ADDED_HEAD) + len(_ADDED_TAIL)


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


def encode_changes(rows: pa.Table, kinds: Kinds, *, key: Sequence[str], mode: ChangelogMode) -> Messages:
    """The messages of a batch of changes, in its order. ``kinds`` are row kind codes; ``key`` is empty without a primary key."""
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
    texts = rows_to_json(list(columns.values()), list(columns))
    if adds.all():
        values = concat(_ADDED_HEAD.decode(), texts, _ADDED_TAIL.decode())
    else:
        mask = pa.array(adds)
        opening = pc.if_else(mask, _ADDED_HEAD.decode(), '{"before":')
        closing = pc.if_else(mask, _ADDED_TAIL.decode(), ',"after":null,"op":"d"}')
        values = concat(opening, texts, closing)
        if mode == "upsert":
            values = pc.if_else(mask, values, pa.scalar(None, pa.string()))
    return Messages(places=places, kinds=kinds, keys=keys, values=_as_bytes(values))


def decode_changes(
    keys: Sequence[bytes | None],
    values: Sequence[bytes | None],
    schema: pa.Schema,
    *,
    key: Sequence[str],
    kinds: Kinds | None = None,
) -> DecodedChanges:
    """The changes that messages stand for, in their order.

    ``kinds``: what the writer said of each message beside it (-1: nothing), which tells +U from +I. Raises
    :class:`~tablestore.json.jsonrows.BadJson` that names the first message that cannot be understood.
    """
    # Mostly all are there, and this is told faster than they are looked through.
    texts = cast("Sequence[bytes]", values) if all(values) else [value for value in values if value is not None]
    if len(texts) == len(values):
        full_only = _decode_values(texts, np.arange(len(values)), schema, key)
        if kinds is None or (kinds < 0).all():
            return full_only
        return replace(full_only, kinds=_checked_kinds(kinds, full_only.places, full_only.kinds))
    full = np.fromiter((value is not None for value in values), dtype=np.bool_, count=len(values))
    with_value, without = np.flatnonzero(full), np.flatnonzero(~full)
    parts = [
        _decode_values(texts, with_value, schema, key),
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


def _decode_values(texts: Sequence[bytes], where: Places, schema: pa.Schema, key: Sequence[str]) -> DecodedChanges:
    if texts and (inserted := _decode_inserts(texts, where, schema, key)) is not None:
        return inserted
    row = pa.struct([field.with_nullable(True) for field in schema])
    envelope = pa.schema([("before", row), ("after", row), ("op", pa.string())])
    try:
        parsed = rows_from_json(texts, envelope)
    except BadJson as error:
        raise _bad(int(where[error.position]), error.reason) from error
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
    for name in key:
        missing = is_true(pc.is_null(one_chunk(table.column(name))))
        _refuse(missing, where[places[order]], f"expected a value in the key column {name!r}, found null", None)
    return DecodedChanges(places=where[places[order]], kinds=kinds[order], rows=table)


def _decode_inserts(texts: Sequence[bytes], where: Places, schema: pa.Schema, key: Sequence[str]) -> DecodedChanges | None:
    """Messages that are all rows added as :func:`encode_changes` writes them; None if they are not."""
    # A JSON reader makes rows of few messages faster than they are compared.
    rows = rows_alike(texts, schema, head=_ADDED_HEAD, tail=_ADDED_TAIL) if len(texts) >= _MANY else None
    if rows is None:
        rows = _inserted_rows(texts, schema)
    if rows is None or any(rows.column(name).null_count for name in key):
        return None
    return DecodedChanges(places=where, kinds=np.full(len(texts), int(RowKind.INSERT), dtype=np.int8), rows=rows)


def _inserted_rows(texts: Sequence[bytes], schema: pa.Schema) -> pa.Table | None:
    head, tail = len(_ADDED_HEAD), -len(_ADDED_TAIL)
    if {text[:head] for text in texts} != {_ADDED_HEAD} or {text[tail:] for text in texts} != {_ADDED_TAIL}:
        return None
    try:
        return rows_from_json([text[head:tail] for text in texts], schema)
    except BadJson:
        # Said better with the whole message in view.
        return None


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
        rows=pa.Table.from_arrays(columns, schema=pa.schema([field.with_nullable(True) for field in schema])),
    )


def _refuse(wrong: npt.NDArray[np.bool_], where: Places, reason: str, ops: pa.Array | None) -> None:
    if wrong.any():
        position = int(np.argmax(wrong))
        op_text = "" if ops is None else f" (op {ops[position].as_py()!r})"
        raise _bad(int(where[position]), reason + op_text)


def _bad(position: int, reason: str) -> BadJson:
    return BadJson(f"message {position}: {reason}", position=position, reason=reason)


def _as_bytes(texts: pa.Array) -> list[bytes | None]:
    values: list[bytes | None] = texts.cast(pa.binary()).to_pylist()
    return values
