"""Records that carry their schema, as Kafka Connect's JSON converter writes them: ``{"schema":{…},"payload":{…}}``.

The schema is the same text in all records of a table until that is altered. It is understood once, cut off from all that begin with
it, and gives the *meaning* of columns whose JSON does not say it: which unit a time has, which scale a decimal. A value of which
Connect knows no schema has ``null`` in its place.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tablestore.cdc.records.evolving import Found, type_of_schema
from tablestore.cdc.records.wirevalues import Meaning
from tablestore.types.arrays import Places

_HEADS = (b'{"schema":', b'{"payload":')
_MEMBERS = {"schema", "payload"}
_CONNECT, _DEBEZIUM = "org.apache.kafka.connect.data.", "io.debezium.time."
_BY_NAME: Mapping[str, Meaning] = {
    f"{_CONNECT}Timestamp": Meaning(ticks="ms"),
    f"{_CONNECT}Time": Meaning(ticks="ms"),
    f"{_DEBEZIUM}Timestamp": Meaning(ticks="ms"),
    f"{_DEBEZIUM}Time": Meaning(ticks="ms"),
    f"{_DEBEZIUM}MicroTimestamp": Meaning(ticks="us"),
    f"{_DEBEZIUM}MicroTime": Meaning(ticks="us"),
    f"{_DEBEZIUM}NanoTimestamp": Meaning(ticks="ns"),
    f"{_DEBEZIUM}NanoTime": Meaning(ticks="ns"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Records of one schema: their places, their payloads, and what the schema says (None: they carry none)."""

    places: Places
    payloads: Sequence[bytes]
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Envelope:
    """What is before and behind a payload."""

    head: bytes
    tail: bytes
    schema: Mapping[str, Any] | None

    def holds(self, value: bytes) -> bool:
        return value.startswith(self.head) and value.endswith(self.tail)

    def payload(self, value: bytes) -> bytes:
        return value[len(self.head) : len(value) - len(self.tail)]


def by_schema(values: Sequence[bytes]) -> list[Group]:
    """The records, grouped by the schemas that they carry."""
    if not any(value.startswith(_HEADS) for value in values):
        return [Group(places=np.arange(len(values), dtype=np.int64), payloads=values)] if values else []
    places: dict[_Envelope | None, list[int]] = {}
    last: _Envelope | None = None
    for place, value in enumerate(values):
        if last is None or not last.holds(value):
            last = next((one for one in places if one is not None and one.holds(value)), None) or _envelope(value)
        places.setdefault(last, []).append(place)
    return [
        Group(
            places=np.array(group, dtype=np.int64),
            payloads=[values[place] if envelope is None else envelope.payload(values[place]) for place in group],
            schema=None if envelope is None else envelope.schema,
        )
        for envelope, group in places.items()
    ]


def meanings(schema: Mapping[str, Any] | None, *, inside: Sequence[str] = ()) -> dict[str, Meaning]:
    """What a schema says of columns, those of the struct below the first of the names ``inside`` that there is."""
    found = {}
    for one in _columns(schema, inside):
        name, column = one.get("name"), one.get("field")
        if not isinstance(column, str) or not isinstance(name, str):
            continue
        if name == f"{_CONNECT}Decimal":
            scale = (one.get("parameters") or {}).get("scale", "0")
            found[column] = Meaning(scale=int(scale) if str(scale).lstrip("-").isdigit() else 0)
        elif name in _BY_NAME:
            found[column] = _BY_NAME[name]
    return found


def column_types(schema: Mapping[str, Any] | None, *, inside: Sequence[str] = ()) -> Found:
    """The types of the columns that a schema describes."""
    columns = _columns(schema, inside)
    return {one["field"]: {type_of_schema(one)} for one in columns if isinstance(one.get("field"), str)}


def _columns(schema: Mapping[str, Any] | None, inside: Sequence[str]) -> list[Mapping[str, Any]]:
    fields = _fields(schema)
    return next((_fields(one) for name in inside for one in fields if one.get("field") == name), [] if inside else fields)


def _fields(schema: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    found = schema.get("fields") if schema else None
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _envelope(value: bytes) -> _Envelope | None:
    """The envelope of a record, None for one without."""
    try:
        text = value.decode()
        whole = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(whole, dict) or set(whole) != _MEMBERS:
        return None
    # Without a schema only an object is taken for a payload: a row may have columns of these names.
    if not isinstance(whole["schema"] if whole["schema"] is not None else whole["payload"], dict):
        return None
    # The payload lies behind the schema, or in front of it: its text is what is left when the rest is taken away.
    decoder = json.JSONDecoder()
    place = text.index("{") + 1
    spans: dict[str, tuple[int, int]] = {}
    while len(spans) < len(_MEMBERS):
        place = text.index('"', place)
        name, place = decoder.raw_decode(text, place)
        start = text.index(":", place) + 1
        start += len(text[start:]) - len(text[start:].lstrip())
        _, place = decoder.raw_decode(text, start)
        spans[name] = start, place
    start, end = spans["payload"]
    return _Envelope(text[:start].encode(), text[end:].encode(), whole["schema"])
