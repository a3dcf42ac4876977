"""The bound of a key compares as the keys of rows do."""

import pyarrow as pa
import pytest

from tablestore.format.binaryrow import encode_row
from tablestore.lsm import keyorder
from tablestore.lsm.keyorder import row_bound
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
