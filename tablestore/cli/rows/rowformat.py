"""The forms in which rows leave: what a command's help has to know, without what writes them."""

from enum import StrEnum


class RowFormat(StrEnum):
    """How rows leave."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"
