"""Into a decimal type without becoming another number.

Arrow moves the point of a 128-bit decimal by a product whose overflow it mostly, but not always, sees. So it casts
214748364800000000000 to DECIMAL(38, 20) as 370473639808768018.07…, and its readers of CSV and JSON do the like. In 256 bits
there is room for any 38 digits, and any integer, at any scale; from there Arrow checks each value.
"""

import pyarrow as pa

_DIGITS = 76


def to_decimal(values: pa.Array | pa.Scalar, kind: pa.DataType) -> pa.Array | pa.Scalar:
    """Decimals, integers, or texts, as the decimals of ``kind``. Raises ArrowInvalid for a value that does not fit it."""
    return values if values.type == kind else values.cast(pa.decimal256(_DIGITS, kind.scale)).cast(kind)
