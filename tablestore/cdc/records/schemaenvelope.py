"""Reads records that carry their schema, as Kafka Connect's JSON converter writes them: ``{"schema":{…},"payload":{…}}``.

The schema is the same text in all records of a table until that is altered. It is understood once, cut off from all that begin with
it, and gives the *meaning* of columns whose JSON does not say it: which unit a time has, which scale a decimal. A value of which
Connect knows no schema has ``null`` in its place.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tablestore.cdc.records.evolving import DECIMAL, Found, digits_of, parameters_of, type_of_schema
from tablestore.cdc.records.wirevalues import WIDEST_DIGITS, ColumnMeaning
from tablestore.json.jsonvalues import JSON, parse_json
from tablestore.types.arrays import Places

_HEADS = (b'{"schema":', b'{"payload":')
_MEMBERS = {"schema", "payload"}
_RECENT = 8
_CONNECT, _DEBEZIUM = "org.apache.kafka.connect.data.", "io.debezium.time."
_BY_NAME: Mapping[str, ColumnMeaning] = {
    f"{_CONNECT}Timestamp": ColumnMeaning(ticks="ms"),
    f"{_CONNECT}Time": ColumnMeaning(ticks="ms"),
    f"{_DEBEZIUM}Timestamp": ColumnMeaning(ticks="ms"),
    f"{_DEBEZIUM}Time": ColumnMeaning(ticks="ms"),
    f"{_DEBEZIUM}MicroTimestamp": ColumnMeaning(ticks="us"),
    f"{_DEBEZIUM}MicroTime": ColumnMeaning(ticks="us"),
    f"{_DEBEZIUM}NanoTimestamp": ColumnMeaning(ticks="ns"),
    f"{_DEBEZIUM}NanoTime": ColumnMeaning(ticks="ns"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Records whose columns mean the same: their places, their payloads, and those meanings. ``types``: of the columns that their
    schemas describe, and of which records."""

    places: Places
    payloads: Sequence[bytes]
    meanings: Mapping[str, ColumnMeaning] = field(default_factory=dict)
    types: Sequence[tuple[Found, Places]] = ()


@dataclass(frozen=True, slots=True, eq=False)
class _Envelope:
    """The text before and behind a payload."""

    head: bytes
    tail: bytes
    schema: Mapping[str, Any] | None

    def holds(self, value: bytes) -> bool:
        return value.startswith(self.head) and value.endswith(self.tail)

    def payload(self, value: bytes) -> bytes:
        return value[len(self.head) : len(value) - len(self.tail)]


def by_schema(values: Sequence[bytes], *, inside: Sequence[str] = (), alone: str | None = None) -> list[Group]:
    """The records, grouped by what the schemas that they carry say of columns: those of the struct below the first of the names
    ``inside`` that there is. ``alone``: the column that a schema without columns is of."""
    if not any(value.startswith(_HEADS) for value in values):
        return [Group(places=np.arange(len(values), dtype=np.int64), payloads=values)] if values else []
    payloads: list[bytes] = []
    places: dict[_Envelope | None, list[int]] = {}
    # A few schemas take turns where several tables share a topic. Of many, each is understood where it comes.
    recent: deque[_Envelope] = deque(maxlen=_RECENT)
    envelopes: dict[tuple[bytes, bytes], _Envelope] = {}
    for place, value in enumerate(values):
        envelope = next((envelope for envelope in recent if envelope.holds(value)), None)
        if envelope is None and (envelope := _envelope(value)) is not None:
            envelope = envelopes.setdefault((envelope.head, envelope.tail), envelope)
            recent.appendleft(envelope)
        places.setdefault(envelope, []).append(place)
        payloads.append(value if envelope is None else envelope.payload(value))
    # Schemas that differ elsewhere are read together: each reading has its price.
    alike: dict[frozenset[tuple[str, ColumnMeaning]], list[tuple[Found, Places]]] = {}
    for envelope, numbers in places.items():
        schema = envelope.schema if envelope is not None else None
        if schema is not None and alone is not None and "fields" not in schema:
            schema = {"fields": [{**schema, "field": alone}]}
        described = column_types(schema, inside=inside), np.array(numbers, dtype=np.int64)
        alike.setdefault(frozenset(meanings(schema, inside=inside).items()), []).append(described)
    return [_group(dict(meaning), types, payloads) for meaning, types in alike.items()]


def _group(meanings: Mapping[str, ColumnMeaning], types: Sequence[tuple[Found, Places]], payloads: Sequence[bytes]) -> Group:
    places = np.sort(np.concatenate([where for _, where in types]))
    return Group(places=places, payloads=[payloads[place] for place in places.tolist()], meanings=meanings, types=types)


def meanings(schema: Mapping[str, Any] | None, *, inside: Sequence[str] = ()) -> dict[str, ColumnMeaning]:
    """The meanings that a schema gives to columns, those of the struct below the first of the names ``inside`` that there is."""
    by_column = {}
    for column_schema in _columns(schema, inside):
        name, column = column_schema.get("name"), column_schema.get("field")
        if not isinstance(column, str) or not isinstance(name, str):
            continue
        if name == DECIMAL:
            by_column[column] = _of_decimal(column_schema)
        elif name in _BY_NAME:
            by_column[column] = _BY_NAME[name]
    return by_column


def column_types(schema: Mapping[str, Any] | None, *, inside: Sequence[str] = ()) -> Found:
    """The types of the columns that a schema describes."""
    wrong = {name for name, meaning in meanings(schema, inside=inside).items() if meaning.wrong is not None}
    columns = (column_schema for column_schema in _columns(schema, inside) if isinstance(column_schema.get("field"), str))
    return {
        column_schema["field"]: {type_of_schema(column_schema)} for column_schema in columns if column_schema["field"] not in wrong
    }


def _of_decimal(field: Mapping[str, Any]) -> ColumnMeaning:
    scale = parameters_of(field).get("scale", "0")
    digits = digits_of(scale)
    if digits is None:
        return ColumnMeaning(wrong=f"its schema has to say a scale of 0 to {WIDEST_DIGITS} digits, found {str(scale)[:50]!r}")
    return ColumnMeaning(scale=digits)


def _columns(schema: Mapping[str, Any] | None, inside: Sequence[str]) -> list[Mapping[str, Any]]:
    fields = _fields(schema)
    return next(
        (_fields(column_schema) for name in inside for column_schema in fields if column_schema.get("field") == name),
        [] if inside else fields,
    )


def _fields(schema: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    fields = schema.get("fields") if schema else None
    return [column_schema for column_schema in fields if isinstance(column_schema, dict)] if isinstance(fields, list) else []


def _envelope(value: bytes) -> _Envelope | None:
    """The envelope of a record, None for one without."""
    try:
        text = value.decode()
        whole = parse_json(text)
    except ValueError:
        return None
    if not isinstance(whole, dict) or set(whole) != _MEMBERS:
        return None
    # Without a schema only an object is taken for a payload: a row may have columns of these names.
    if not isinstance(whole["schema"] if whole["schema"] is not None else whole["payload"], dict):
        return None
    # The payload lies behind the schema, or in front of it: its text is what is left when the rest is taken away.
    place = text.index("{") + 1
    spans: dict[str, tuple[int, int]] = {}
    while len(spans) < len(_MEMBERS):
        place = text.index('"', place)
        name, place = JSON.raw_decode(text, place)
        start = text.index(":", place) + 1
        start += len(text[start:]) - len(text[start:].lstrip())
        _, place = JSON.raw_decode(text, start)
        spans[name] = start, place
    start, end = spans["payload"]
    return _Envelope(text[:start].encode(), text[end:].encode(), whole["schema"])
