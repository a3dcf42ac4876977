"""Row kinds: codes are stored, symbols are shown."""

import pyarrow as pa
import pytest

from tablestore.errors import InvalidInputError
from tablestore.types.rowkind import RowKind, kinds_from_symbols, symbols_from_kinds


def test_stored_codes_never_change() -> None:
    assert [(kind.value, kind.symbol) for kind in RowKind] == [
        (0, "+I"),
        (1, "-U"),
        (2, "+U"),
        (3, "-D"),
    ]


@pytest.mark.parametrize("text", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_symbols_become_codes_and_come_back(text: pa.DataType) -> None:
    symbols = pa.array(["-D", "+I", "+U", "-U"]).cast(text)
    codes = kinds_from_symbols(symbols)
    assert codes.type == pa.int8() and codes.to_pylist() == [3, 0, 2, 1]
    assert symbols_from_kinds(codes).to_pylist() == symbols.to_pylist()


def test_dictionaries_chunks_and_nothing_are_fine() -> None:
    chunked = pa.chunked_array([pa.array(["+I", "-D"]).dictionary_encode(), pa.array(["-D"]).dictionary_encode()])
    codes = kinds_from_symbols(chunked)
    assert codes.to_pylist() == [0, 3, 3] and symbols_from_kinds(codes).to_pylist() == ["+I", "-D", "-D"]
    assert len(kinds_from_symbols(pa.array([], pa.string()))) == len(symbols_from_kinds(pa.array([], pa.int8()))) == 0


@pytest.mark.parametrize("symbols", [pa.array(["+I", "I"]), pa.array(["+I", None]), pa.array([0])], ids=str)
def test_other_symbols_are_refused(symbols: pa.Array) -> None:
    with pytest.raises(InvalidInputError, match=r"row kind|_row_kind"):
        kinds_from_symbols(symbols)


@pytest.mark.parametrize("codes", [[0, 4], [-1], [0, None]], ids=str)
def test_other_codes_are_refused(codes: list[int | None]) -> None:
    with pytest.raises(InvalidInputError, match="0 to 3"):
        symbols_from_kinds(pa.array(codes, pa.int8()))
