"""The bound of a key compares as the keys of rows do."""

from collections.abc import Callable, Sequence

import pyarrow as pa
import pytest

from tablestore.errors import FormatError
from tablestore.format.binaryrow import encode_row
from tablestore.lsm import keyorder
from tablestore.lsm.keyorder import KeyOrder, row_bound
from tablestore.lsm.keys import key_at, plain_columns
from tablestore.types.arrowtypes import to_arrow_type
from tablestore.types.datatypes import Field
from tablestore.types.typestring import parse_type

KEYS = [
    (("BIGINT NOT NULL",), (-(2**63),)),
    (("INT",), (7,)),
    (("TINYINT NOT NULL", "STRING NOT NULL"), (-1, "é𝄞")),
    (("STRING", "SMALLINT"), ("", 3)),
    (("VARCHAR(20) NOT NULL",), ("a long text of a key",)),
    (("CHAR(3)",), ("a",)),
    (("INT", "STRING"), (None, "x")),
    (("BOOLEAN NOT NULL", "DOUBLE"), (True, -0.0)),
]


@pytest.mark.parametrize(("types", "values"), KEYS, ids=str)
def test_a_bound_is_the_plain_form_of_the_key(
    types: tuple[str, ...], values: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = [Field(id=number, name=f"k{number}", type=parse_type(text)) for number, text in enumerate(types)]
    if None not in values and "BOOLEAN NOT NULL" not in types:
        # Whole numbers and text become no arrays.
        monkeypatch.setattr(keyorder, "plain_columns", lambda *arguments: pytest.fail("arrays were made"))
    arrays = [pa.array([value], to_arrow_type(field.type)) for value, field in zip(values, fields, strict=True)]
    rows = plain_columns(arrays, [field.type.nullable for field in fields])
    assert row_bound(encode_row(values, [field.type for field in fields]), fields) == key_at(rows, 0)


@pytest.mark.parametrize(
    "types", [("BIGINT NOT NULL",), ("INT", "TINYINT"), ("SMALLINT",), ("INT", "STRING"), ("DOUBLE",), ()], ids=str
)
def test_many_keys_have_the_order_of_each(types: tuple[str, ...]) -> None:
    kinds = tuple(parse_type(text) for text in types)
    order = KeyOrder(kinds)
    ends = {"BIGINT NOT NULL": (-(2**63), 2**63 - 1), "INT": (-(2**31), 2**31 - 1), "SMALLINT": (-(2**15), 2**15 - 1)}
    ends |= {"TINYINT": (-128, 127), "STRING": ("", "long text of a key"), "DOUBLE": (-0.0, float("nan"))}
    keys = [encode_row([ends[text][(number + place) % 2] for place, text in enumerate(types)], kinds) for number in range(40)]
    assert order.of_all(keys) == [order(key) for key in keys]
    nullable = all(kind.nullable for kind in kinds)
    with_nulls = [*keys, encode_row([None] * len(types), kinds)] if nullable else keys
    assert order.of_all(with_nulls) == [order(key) for key in with_nulls]
    for damaged in (keys[0][:-1], keys[0][:4] + b"\1" + keys[0][5:], b"\0\0\0\7" + keys[0][4:]) if types else ():
        assert outcome(order.of_all, [*keys, damaged]) == outcome(lambda many: [order(key) for key in many], [*keys, damaged])


def outcome(values: Callable[[list[bytes]], Sequence[object]], keys: list[bytes]) -> Sequence[object] | None:
    """The values; None where they are refused."""
    try:
        return values(keys)
    except FormatError:
        return None
