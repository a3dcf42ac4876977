"""Schema files: golden bytes, older versions, damage, foreign files."""

import json
from dataclasses import replace

import pytest

from tablestore.errors import FormatError, UnsupportedError
from tablestore.format.schemafile import decode_schema, encode_schema
from tablestore.types.datatypes import MAX_LENGTH, ArrayType, AtomicType, Field, MapType, RowType, TypeRoot
from tablestore.types.schema import TableSchema

INT = AtomicType(root=TypeRoot.INT, nullable=False)
STRING = AtomicType(root=TypeRoot.VARCHAR, length=MAX_LENGTH)
SCHEMA = TableSchema(
    id=1,
    fields=(
        Field(id=0, name="id", type=INT),
        Field(id=3, name="é", type=ArrayType(element=STRING), description="words", default_value="[]"),
        Field(
            id=4,
            name="r",
            type=MapType(key=INT, value=RowType(fields=(Field(id=5, name="x", type=STRING),), nullable=False)),
        ),
    ),
    highest_field_id=7,
    partition_keys=(),
    primary_keys=("id",),
    options={"bucket": "2", "a": "b"},
    comment="orders",
    time_millis=1795196499460,
)
GOLDEN = """{
  "version": 3,
  "id": 1,
  "fields": [
    {
      "id": 0,
      "name": "id",
      "type": "INT NOT NULL"
    },
    {
      "id": 3,
      "name": "é",
      "type": {
        "type": "ARRAY",
        "element": "STRING"
      },
      "description": "words",
      "defaultValue": "[]"
    },
    {
      "id": 4,
      "name": "r",
      "type": {
        "type": "MAP",
        "key": "INT NOT NULL",
        "value": {
          "type": "ROW NOT NULL",
          "fields": [
            {
              "id": 5,
              "name": "x",
              "type": "STRING"
            }
          ]
        }
      }
    }
  ],
  "highestFieldId": 7,
  "partitionKeys": [],
  "primaryKeys": [
    "id"
  ],
  "options": {
    "a": "b",
    "bucket": "2"
  },
  "comment": "orders",
  "timeMillis": 1795196499460,
  "tablestore.version": 1,
  "tablestore.checksum": "45a1c7f78c6d47a2ece4d1986dbb4f79da1be2c275db37ae77ef3e583ccbc895"
}""".encode()
FOREIGN = {
    "version": 3,
    "id": 0,
    "fields": [{"id": 0, "name": "a", "type": "INT"}, {"id": 1, "name": "b", "type": "STRING"}],
    "highestFieldId": 1,
    "partitionKeys": [],
    "primaryKeys": ["a"],
    "options": {},
    "comment": None,
}


def _decode(content, name="schema-0"):
    return decode_schema(json.dumps(content).encode(), name)


def test_golden_bytes_both_ways():
    assert encode_schema(SCHEMA) == GOLDEN
    assert decode_schema(GOLDEN, "t/schema/schema-1") == SCHEMA


def test_missing_comment_is_left_out_and_a_null_one_is_none():
    assert b"comment" not in encode_schema(replace(SCHEMA, comment=None))
    assert _decode(FOREIGN).comment is None


@pytest.mark.deep
def test_every_flipped_bit_is_refused_or_harmless():
    data = encode_schema(SCHEMA)
    silent = []
    for position in range(len(data) * 8):
        damaged = bytearray(data)
        damaged[position // 8] ^= 1 << position % 8
        try:
            value = decode_schema(bytes(damaged), "schema-1")
        except FormatError:
            continue
        if value != SCHEMA:
            silent.append(position)
    assert silent == []


@pytest.mark.deep_after(2)
@pytest.mark.parametrize("size", [1, 8, 64, 512])
def test_every_truncation_and_zeroed_block_is_refused(size):
    data = encode_schema(SCHEMA)
    for start in range(len(data)):
        with pytest.raises(FormatError):
            decode_schema(data[:start] + bytes(min(size, len(data) - start)) + data[start + size :], "schema-1")
        with pytest.raises(FormatError):
            decode_schema(data[:start], "schema-1")


def test_older_versions_imply_their_defaults():
    first = {key: value for key, value in FOREIGN.items() if key != "version"}
    assert _decode(first).options == {"bucket": "1", "file.format": "orc"}
    assert _decode(FOREIGN | {"version": 1, "options": {"bucket": "4"}}).options == {"bucket": "4", "file.format": "orc"}
    assert _decode(FOREIGN | {"version": 2}).options == {"file.format": "orc"}
    assert _decode(FOREIGN).options == {}


def test_foreign_files_may_have_keys_that_we_do_not_know():
    schema = _decode(FOREIGN | {"newKey": {"x": 1}})
    assert schema.field_names == ("a", "b")
    assert schema.time_millis == 0


def test_newer_versions_are_refused_as_too_new():
    with pytest.raises(FormatError, match="version 4") as caught:
        _decode(FOREIGN | {"version": 4})
    assert caught.value.kind == "too-new"


def test_types_that_are_not_supported_are_refused_by_name():
    fields = [{"id": 0, "name": "a", "type": "BLOB"}]
    with pytest.raises(UnsupportedError, match=r"schema-0.*BLOB"):
        _decode(FOREIGN | {"fields": fields})


@pytest.mark.parametrize(
    "change",
    [
        {"id": 1},
        {"id": None},
        {"fields": []},
        {"fields": None},
        {"fields": [7]},
        {"fields": [{"id": 0, "name": "a", "type": "NOPE"}]},
        {"fields": [{"id": 0, "name": "a", "type": "INT"}, {"id": 0, "name": "b", "type": "INT"}]},
        {"fields": [{"id": 0, "name": "a", "type": "INT"}, {"id": 1, "name": "a", "type": "INT"}]},
        {"highestFieldId": 0},
        {"primaryKeys": ["zzz"]},
        {"primaryKeys": ["a", "a"]},
        {"primaryKeys": ["a"], "partitionKeys": ["a"]},
        {"partitionKeys": "a"},
        {"options": {"a": 1}},
        {"comment": 5},
        {"version": 0},
        {"version": "3"},
    ],
)
def test_impossible_values_are_refused(change):
    with pytest.raises(FormatError, match="schema-0"):
        _decode(FOREIGN | change)
