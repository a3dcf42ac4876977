"""Binds the text of a query as a BoundQuery: its tables are found, resolved by the caller, and read no more than the query
needs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from tablestore.environment.engine import BoundQuery, ManagedRelation, QueryRelation, Relation, SelectList
from tablestore.memo import Memo
from tablestore.sql.query.parameters import Parameters
from tablestore.sql.query.plan import QueryPlan, QueryView, Replacement, plan_query
from tablestore.sql.query.tablereferences import Reference, references_in
from tablestore.sql.query.tokenstream import Tokens
from tablestore.sql.query.use import Use
from tablestore.sql.source import Path
from tablestore.types.rowposition import POSITION_COLUMNS


def bind(
    text: str,
    resolve: Callable[[Reference], Relation | None],
    parameters: Parameters = (),
    functions: Callable[[Path], str | None] | None = None,
    memo: Memo | None = None,
) -> BoundQuery:
    """Binds a query. ``resolve`` gives what a table reference reads, None if the engine knows the name itself; so ``functions``.
    ``memo``: what was found out of this text before."""
    memo = memo or Memo()
    read = memo(_read, text)
    resolved = [resolve(reference) for reference in read.references]
    replacements = tuple(None if relation is None else _replacement(relation) for relation in resolved)
    if parameters or functions is not None:
        plan = plan_query(read.tokens, read.references, replacements, parameters, functions)
    else:
        plan = memo(_planned, text, read, replacements)
    uses = iter(plan.uses)
    relations = tuple(_pruned(relation, uses) for relation in resolved if relation is not None)
    by_engine = tuple(
        reference.path.parts for reference, relation in zip(read.references, resolved, strict=True) if relation is None
    )
    return BoundQuery(
        text=text,
        relations=relations,
        edits=plan.edits,
        engine_tables=by_engine,
        parameters=plan.parameters,
        parsed=plan.parsed.moved(),
    )


def selecting(selected: SelectList, table: ManagedRelation) -> QueryRelation:
    """The query that selects these columns of a table."""
    return QueryRelation(name=table.name, query=bind(selected.text, lambda _: table), selected=selected)


@dataclass(frozen=True, slots=True)
class _Read:
    """A text that was read; of two that are equal one will do."""

    text: str
    tokens: Tokens = field(compare=False)
    references: tuple[Reference, ...] = field(compare=False)


def _read(text: str) -> _Read:
    tokens = Tokens(text)
    return _Read(text, tokens, references_in(tokens))


def _planned(text: str, read: _Read, replacements: tuple[Replacement | None, ...]) -> QueryPlan:
    return plan_query(read.tokens, read.references, replacements)


def _replacement(relation: Relation) -> Replacement:
    match relation:
        case ManagedRelation():
            fields = relation.schema.fields
            return Replacement(path=tuple(relation.name.split(".")), fields=fields)
        case QueryRelation(query=query, selected=SelectList(columns=columns)):
            (stored,) = map(_replacement, query.relations)
            names = {stored_field.name for stored_field in stored.fields or ()}
            return replace(stored, computed=tuple(name for name in columns if name not in names))
        case QueryRelation(query=query):
            replacements = tuple(_replacement(inner) for inner in query.relations)
            view = QueryView(text=query.text, edits=query.edits, replacements=replacements, parsed=query.parsed)
            return Replacement(path=tuple(relation.name.split(".")), view=view)
        case _:
            return Replacement(path=tuple(relation.name.split(".")))


def _pruned(relation: Relation, uses: Iterator[Use]) -> Relation:
    """The relation with what is used of it, or of those that its query reads."""
    match relation:
        case ManagedRelation():
            use = next(uses)
            # If nothing is known of the whole query, the use by the query of a view still holds.
            return relation if use == Use() else replace(relation, columns=use.columns, filter=use.filter)
        case QueryRelation(selected=SelectList()):
            return _narrowed(relation, next(uses))
        case QueryRelation(query=query):
            return replace(relation, query=replace(query, relations=tuple(_pruned(inner, uses) for inner in query.relations)))
        case _:
            next(uses)
            return relation


def _narrowed(relation: QueryRelation, use: Use) -> QueryRelation:
    """A table with computed columns, without the columns that are not used."""
    (table,), selected = relation.query.relations, relation.selected
    assert selected is not None and isinstance(table, ManagedRelation)
    if use == Use():
        selected.check_used(selected.columns)
        return relation
    used = {*(table.schema.field_names if use.columns is None else use.columns), *POSITION_COLUMNS}
    used |= set(selected.columns if use.computed is None else use.computed)
    selected.check_used(used)
    kept = {name: text for name, text in selected.columns.items() if name in used}
    narrow = selecting(replace(selected, columns=kept), table)
    (read,) = narrow.query.relations
    assert isinstance(read, ManagedRelation)
    return replace(narrow, query=replace(narrow.query, relations=(replace(read, filter=use.filter),)))
