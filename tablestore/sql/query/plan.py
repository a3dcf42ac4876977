"""What is done with a query whose tables are resolved: the edits of its text, its parameters, and what it uses of each table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tablestore.sql.query.edits import prefix_edits, relation_edits
from tablestore.sql.query.extent import Tokens
from tablestore.sql.query.parameters import Parameters, bind_parameters
from tablestore.sql.query.references import Reference
from tablestore.sql.query.use import PREFIX, Use
from tablestore.sql.source import Edit, apply_edits
from tablestore.types.datatypes import Field


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """A relation takes the place of a reference. ``path``: the whole name of its table; ``fields``: its columns, to be pruned."""

    path: tuple[str, ...]
    fields: tuple[Field, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPlan:
    """``Edit.relation`` counts the replaced references in order, as ``uses`` does. ``parameters`` are by name."""

    edits: tuple[Edit, ...]
    parameters: Mapping[str, Any]
    uses: tuple[Use, ...]


def plan_query(
    text: str,
    references: Sequence[Reference],
    replacements: Sequence[Replacement | None],
    parameters: Parameters = (),
) -> QueryPlan:
    """Plan a query. ``replacements``: one for each reference, None where the engine knows the table itself.

    Raises InvalidInputError if parameters and values do not match.
    """
    tokens = Tokens(text)
    marker_edits, values = bind_parameters(text, tokens, parameters)
    pairs = [(found, made) for found, made in zip(references, replacements, strict=True) if made is not None]
    edits = [edit for relation, (found, _) in enumerate(pairs) for edit in relation_edits(found, relation)]
    # Time travel and the arguments of a call are gone, with the parameters in them.
    gone = [edit.span for edit in edits]
    edits += [edit for edit in marker_edits if not any(span.start <= edit.span.start < span.end for span in gone)]
    edits += prefix_edits(tokens, references, [(found, made.path) for found, made in pairs])
    edits.sort(key=lambda edit: edit.span)
    if not pairs:
        return QueryPlan(edits=tuple(edits), parameters=values, uses=())
    named = apply_edits(text, edits, lambda relation: f"{PREFIX}{relation}")
    # sqlglot takes a while to load; a query that reads no table of ours does without it.
    from tablestore.sql.query.pruning import prune

    return QueryPlan(edits=tuple(edits), parameters=values, uses=prune(named, [made.fields for _, made in pairs], values))
