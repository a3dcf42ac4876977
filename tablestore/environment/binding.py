"""From the text of a query to a BoundQuery: its tables are found, resolved by the caller, and read no more than the query needs."""

from collections.abc import Callable
from dataclasses import replace

from tablestore.environment.engine import BoundQuery, ManagedRelation, Relation
from tablestore.sql.query.parameters import Parameters
from tablestore.sql.query.plan import Replacement, plan_query
from tablestore.sql.query.references import Reference, find_references


def bind(text: str, resolve: Callable[[Reference], Relation | None], parameters: Parameters = ()) -> BoundQuery:
    """Bind a query. ``resolve`` gives what a table reference reads, None if the engine knows the name itself."""
    references = find_references(text)
    resolved = [resolve(reference) for reference in references]
    plan = plan_query(text, references, [_replacement(*pair) for pair in zip(references, resolved, strict=True)], parameters)
    relations = [relation for relation in resolved if relation is not None]
    return BoundQuery(
        text=text,
        relations=tuple(
            replace(relation, columns=use.columns, filter=use.filter) if isinstance(relation, ManagedRelation) else relation
            for relation, use in zip(relations, plan.uses, strict=True)
        ),
        edits=plan.edits,
        parameters=plan.parameters,
    )


def _replacement(reference: Reference, relation: Relation | None) -> Replacement | None:
    if relation is None:
        return None
    if not isinstance(relation, ManagedRelation):
        return Replacement(path=reference.path.parts)
    fields = relation.pin.spec.open(relation.pin.schema_id).schema.fields
    return Replacement(path=tuple(relation.name.split(".")), fields=fields)
