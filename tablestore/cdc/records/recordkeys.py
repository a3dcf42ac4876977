"""Reads the keys of records. Of a record without a value the key is all there is: the row that it names is gone.

A key is a JSON object with the columns of the primary key (others are ignored). Of a primary key of one column it may be the value
alone, as JSON or as text. Either may have its schema around it. Where a schema of Avro is given, keys are records of that.
"""

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tablestore.cdc.records.avroobjects import AvroReader, AvroSchema
from tablestore.cdc.records.faults import Faults, at_places
from tablestore.cdc.records.jsonobjects import ObjectReader
from tablestore.cdc.records.schemaenvelope import Group, by_schema
from tablestore.cdc.records.target import Part, Target
from tablestore.json.jsonvalues import parse_json
from tablestore.types.arrays import Places
from tablestore.types.rowkind import RowKind


class KeyReader:
    """Reads the keys of the records of one table; ``schema``: of keys of Avro."""

    def __init__(self, target: Target, schema: AvroSchema | None = None) -> None:
        self._target = target
        columns = ObjectReader({"": target.key_fields})
        self._reader: ObjectReader | AvroReader = columns if schema is None else AvroReader(columns, schema)

    def deletions(self, keys: Sequence[bytes | None], places: Places) -> tuple[list[Part], Faults]:
        """The records at ``places`` as deletions of the rows that their keys name."""
        if not self._target.key:
            return [], dict.fromkeys(places.tolist(), "the row is gone, and the table has no primary key to delete it by")
        needs = self._target.needs
        if RowKind.DELETE in needs.values or RowKind.DELETE in needs.refused:
            why = needs.refused.get(RowKind.DELETE) or "the table takes the values of the row back from what is stored"
            return [], dict.fromkeys(places.tolist(), f"it holds no more than the key of the row that is gone: {why}")
        faults = {place: "neither a value nor a key: nothing says which row it is" for place in places.tolist() if not keys[place]}
        named = np.array([place for place in places.tolist() if place not in faults], dtype=np.int64)
        parts: list[Part] = []
        for group in self._groups([keys[place] or b"" for place in named.tolist()]):
            where = named[group.places]
            objects = self._reader.read(group.payloads, group.meanings)
            wrong = {place: f"its key: {reason}" for place, reason in objects.faults.items()}
            faults.update(at_places(wrong, where.tolist()))
            names = (field.name for field in self._target.key_fields)
            columns = dict(zip(names, objects.rows[""].columns, strict=True))
            parts.append(Part(places=where, kinds=np.full(len(where), int(RowKind.DELETE), dtype=np.int8), columns=columns))
        return parts, faults

    def _groups(self, keys: Sequence[bytes]) -> list[Group]:
        if isinstance(self._reader, AvroReader):
            return [Group(places=np.arange(len(keys), dtype=np.int64), payloads=keys)] if keys else []
        only_column = self._target.key[0] if len(self._target.key) == 1 else None
        groups = by_schema(keys, alone=only_column)
        return [replace(group, payloads=[self._object(key) for key in group.payloads]) for group in groups]

    def _object(self, key: bytes) -> bytes:
        if len(self._target.key) > 1 or key.lstrip()[:1] == b"{":
            return key
        try:
            text = key.decode()
            parse_json(text)
        except ValueError:
            text = json.dumps(key.decode(errors="surrogateescape"))
        return b"{%s:%s}" % (json.dumps(self._target.key[0]).encode(), text.encode())
