"""Arrow on the way in and out: canonical types (``arrowtypes``) and the check of rows to be written (``conform``)."""

from tablestore.types.arrowtypes import (
    TYPE_KEY,
    fields_from_arrow,
    from_arrow_type,
    timestamp_unit,
    to_arrow_field,
    to_arrow_schema,
    to_arrow_type,
)
from tablestore.types.conform import conform

__all__ = [
    "TYPE_KEY",
    "conform",
    "fields_from_arrow",
    "from_arrow_type",
    "timestamp_unit",
    "to_arrow_field",
    "to_arrow_schema",
    "to_arrow_type",
]
