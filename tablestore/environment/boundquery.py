"""Binds the text of a query as a BoundQuery: its tables are found, resolved by the caller, and read no more than the query
needs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from tablestore.environment.engine import (
    BoundQuery,
    ManagedRelation,
    PrunableRows,
    QueryRelation,
    Relation,
    RowsRelation,
    SelectList,
)
from tablestore.memo import Memo
from tablestore.sql.query.edits import prefix_edits, relation_edits
from tablestore.sql.query.functions import Called, function_edits
from tablestore.sql.query.parameters import Parameters, bind_parameters
from tablestore.sql.query.plan import QueryPlan, QueryView, Replacement, plan_query
from tablestore.sql.query.tablereferences import Reference, references_in
from tablestore.sql.query.tokenstream import Tokens
from tablestore.sql.query.use import Use
from tablestore.sql.source import Path
from tablestore.sql.sqldialect import SqlDialect
from tablestore.types.rowposition import POSITION_COLUMNS


def bind(
    text: str,
    resolve: Callable[[Reference], Relation | None],
    parameters: Parameters = (),
    functions: Callable[[Path], Called | None] | None = None,
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


def bind_dialect(
    text: str,
    dialect: SqlDialect,
    resolve: Callable[[Reference], Relation | None],
    parameters: Parameters = (),
    functions: Callable[[Path], Called | None] | None = None,
    *,
    is_closed: bool = False,
) -> BoundQuery:
    """Binds a query in other words than Spark's: the names of its tables are replaced, and nothing else is looked into.

    What it uses of a table is for the engine to find out, which reads these words. Arguments as :func:`bind`; ``is_closed`` as in
    BoundQuery.
    """
    tokens = Tokens(text, dialect)
    references = references_in(tokens)
    resolved = [resolve(reference) for reference in references]
    relations = tuple(relation for relation in resolved if relation is not None)
    for relation in relations:
        if isinstance(relation, QueryRelation) and relation.selected is not None:
            relation.selected.check_used(relation.selected.columns)
    pairs = [(reference, relation) for reference, relation in zip(references, resolved, strict=True) if relation is not None]
    marker_edits, values = bind_parameters(text, tokens, parameters)
    edits = [edit for number, (reference, _) in enumerate(pairs) for edit in relation_edits(reference, number, dialect)]
    replaced = [edit.span for edit in edits]
    call_edits = () if functions is None else tuple(function_edits(tokens, functions))
    edits += [
        edit for edit in (*marker_edits, *call_edits) if not any(span.start <= edit.span.start < span.end for span in replaced)
    ]
    edits += prefix_edits(tokens, references, [(reference, tuple(relation.name.split("."))) for reference, relation in pairs])
    edits.sort(key=lambda edit: edit.span)
    return BoundQuery(
        text=text,
        relations=relations,
        edits=tuple(edits),
        engine_tables=tuple(
            reference.path.parts for reference, relation in zip(references, resolved, strict=True) if relation is None
        ),
        parameters=values,
        dialect=dialect,
        # A call such as table_changes('t', 1) is no table of DuckDB's.
        tables=tuple(replace(reference.path, span=reference.span) for reference in references if reference.call is None),
        is_closed=is_closed,
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
        case RowsRelation(rows=PrunableRows() as rows):
            return Replacement(path=tuple(relation.name.split(".")), fields=rows.prunable_fields)
        case QueryRelation(query=query, selected=SelectList(columns=columns)):
            (stored,) = map(_replacement, query.relations)
            names = {stored_field.name for stored_field in stored.fields or ()}
            return replace(stored, computed=tuple(name for name in columns if name not in names))
        case QueryRelation(query=query) if query.dialect is not SqlDialect.SPARK:
            return Replacement(path=tuple(relation.name.split(".")))
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
        case RowsRelation(rows=PrunableRows() as rows):
            use = next(uses)
            return relation if use == Use() else replace(relation, rows=rows.pruned(use.columns, use.filter))
        case QueryRelation(selected=SelectList()):
            return _narrowed(relation, next(uses))
        case QueryRelation(query=query) if query.dialect is SqlDialect.SPARK:
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
