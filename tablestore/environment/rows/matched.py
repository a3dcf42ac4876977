"""Finds the part of its target that a MERGE can match: an engine that knows the values of its source can say.

    values of the source's columns  ->  matched_part -> a condition on the target
                                            restricted: its scan leaves other rows out
                                            reading: other writes of others do not make the statement stale

The values are those of the rows that are joined: of a source that was read once, and kept.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from tablestore.environment.engine import ChangeTarget, ManagedRelation, QueryRelation, Relation
from tablestore.types.datatypes import Field
from tablestore.types.filter.predicate import Predicate, all_of


def matched_part(
    target: Relation, columns: Sequence[tuple[str, str]], equal: Callable[[Field, str], Predicate | None]
) -> Predicate | None:
    """The condition that holds for all rows of the target that can match; None if nothing can be said.

    ``columns``: the names of target and source that are equal; ``equal``: what holds for a column that equals one of the source.
    """
    fields = {} if (table := _table_of(target)) is None else _unique(table.schema.fields)
    predicates = [equal(fields[mine], theirs) for mine, theirs in columns if mine in fields]
    known_predicates = [predicate for predicate in predicates if predicate is not None]
    return all_of(known_predicates) if known_predicates else None


def restricted(relation: Relation, part: Predicate | None) -> Relation:
    """The relation of a target without rows that are not in a part of it."""
    match relation:
        case ManagedRelation() if part is not None:
            return replace(relation, filter=_both(relation.filter, part))
        case QueryRelation(query=query) if len(query.relations) == 1:
            return replace(relation, query=replace(query, relations=tuple(restricted(one, part) for one in query.relations)))
        case _:
            return relation


def reading(target: ChangeTarget, part: Predicate | None) -> ChangeTarget:
    """The same statement, which reads no other rows of relation ``target`` than those in a part of it."""
    if part is None or target.matching is None or not target.matching.reads_once:
        return target
    return replace(target, change=replace(target.change, reads=_both(target.change.reads, part)))


def _table_of(relation: Relation) -> ManagedRelation | None:
    """The table of a target, which may have columns added by a query."""
    match relation:
        case ManagedRelation():
            return relation
        case QueryRelation(query=query) if len(query.relations) == 1:
            return _table_of(query.relations[0])
        case _:
            return None


def _unique(fields: Sequence[Field]) -> dict[str, Field]:
    """Fields by name without regard to case; those that could mean several are left out."""
    folded = [field.name.casefold() for field in fields]
    return {name: field for name, field in zip(folded, fields, strict=True) if folded.count(name) == 1}


def _both(condition: Predicate | None, part: Predicate) -> Predicate:
    return part if condition is None else all_of((condition, part))
