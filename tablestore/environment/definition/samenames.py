"""Finds column names that are one to a query: SQL ignores upper and lower case, so a table made by SQL has no two such names."""

from collections.abc import Iterable


def same_in_sql(name: str, taken: Iterable[str]) -> str | None:
    """The first of the names that a query cannot tell from ``name``."""
    return next((one for one in taken if one.casefold() == name.casefold()), None)


def why_same(name: str, found: str) -> str:
    """The explanation that a message adds where the names are not spelt alike."""
    return "" if name == found else f", and a query cannot tell {name!r} from it: they differ in case only"
