"""Describes what a query uses of a relation."""

from dataclasses import dataclass

from tablestore.types.filter.predicate import Predicate


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """The use that a query makes of a relation: stored columns (None: all; at least one), computed ones (None: all), and a filter
    that every used row fulfils."""

    columns: tuple[str, ...] | None = None
    computed: tuple[str, ...] | None = None
    filter: Predicate | None = None
