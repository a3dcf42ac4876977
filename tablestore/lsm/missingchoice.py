"""The choices of a write whose rows lack columns: refuse, null, keep.

``missingcolumns`` says which stored values would be lost. It is apart, because help and completion of commands load no Arrow.
"""

from enum import StrEnum

from tablestore.errors import InvalidInputError
from tablestore.names import did_you_mean


class MissingColumns(StrEnum):
    """The behaviour of a write for columns that its rows lack and whose stored values would be lost."""

    REFUSE = "refuse"
    NULL = "null"
    KEEP = "keep"

    @classmethod
    def of(cls, text: "str | MissingColumns") -> "MissingColumns":
        """The choice of that name. Raises InvalidInputError that names all of them."""
        names = [choice.value for choice in cls]
        if text not in names:
            raise InvalidInputError(
                f"expected missing_columns to be one of {', '.join(names)}, found {text!r:.100}{did_you_mean(str(text), names)}",
                kind="missing-columns",
            )
        return cls(text)
