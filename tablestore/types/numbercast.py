"""Casts to decimals and floats without changing the number, where Arrow's own cast would.

Arrow moves the point of a 128-bit decimal by a product whose overflow it mostly, but not always, sees. So it casts
214748364800000000000 to DECIMAL(38, 20) as 370473639808768018.07…, and its readers of CSV and JSON do the like. In 256 bits
there is room for any 38 digits, and any integer, at any scale; from there Arrow checks each value.

It makes the float of 0.35 by a product with 0.01, which is 0.35000000000000003; the float of a text is the nearest one.

It reads the text 1e400 as infinity, and casts 1e39 to a FLOAT as infinity. A number that is too large is refused, as SQL engines do
it; infinity is written ``inf`` or ``Infinity``.
"""

import pyarrow as pa
import pyarrow.compute as pc

_DIGITS = 76
_SAYS_SO = r"^\s*[+-]?inf(inity)?\s*$"


def to_decimal(values: pa.Array | pa.Scalar, kind: pa.DataType) -> pa.Array | pa.Scalar:
    """Decimals, integers, or texts, as the decimals of ``kind``. Raises ArrowInvalid for a value that does not fit it."""
    return values if values.type == kind else values.cast(pa.decimal256(_DIGITS, kind.scale)).cast(kind)


def to_float(values: pa.Array | pa.Scalar, kind: pa.DataType) -> pa.Array | pa.Scalar:
    """Texts, decimals or floating point numbers as numbers of ``kind``. Raises ArrowInvalid for one that is too large."""
    if values.type == kind:
        return values
    if pa.types.is_decimal(values.type):
        values = values.cast(pa.string())
    text = pa.types.is_string(values.type)
    numbers = (pc.utf8_trim_whitespace(values) if text else values).cast(kind)
    infinite = pc.is_inf(numbers)
    if pc.any(infinite).as_py():
        says_infinite = pc.match_substring_regex(values, _SAYS_SO, ignore_case=True) if text else pc.is_inf(values)
        if pc.any(pc.and_not(infinite, says_infinite)).as_py():
            raise pa.ArrowInvalid(f"a number is too large for {kind}")
    return numbers
