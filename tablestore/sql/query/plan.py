"""Plans a query whose tables are resolved: the edits of its text, its parameters, and what it uses of each table."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tablestore.sql.freshnames import fresh_name
from tablestore.sql.query.edits import prefix_edits, relation_edits
from tablestore.sql.query.functions import function_edits
from tablestore.sql.query.parameters import Parameters, bind_parameters
from tablestore.sql.query.tablereferences import Reference
from tablestore.sql.query.tokenstream import Tokens
from tablestore.sql.query.use import PREFIX, Use
from tablestore.sql.source import Edit, Path, apply_edits
from tablestore.types.datatypes import Field


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """A relation that takes the place of a reference. ``path``: the whole name of its table; ``fields``: its columns, to be pruned,
    and ``computed``: the names of those that are made of them.

    ``view``: what is read is the rows of another query.
    """

    path: tuple[str, ...]
    fields: tuple[Field, ...] | None = None
    computed: tuple[str, ...] = ()
    view: "QueryView | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryView:
    """A query that others read like a table: its text, with the replacements that its edits count."""

    text: str
    edits: tuple[Edit, ...]
    replacements: tuple[Replacement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPlan:
    """The plan of a query. ``Edit.relation`` counts the replaced references in order. ``uses`` has one use for each, and in the
    place of a view those of its own relations. ``parameters`` are by name."""

    edits: tuple[Edit, ...]
    parameters: Mapping[str, Any]
    uses: tuple[Use, ...]


def plan_query(
    text: str | Tokens,
    references: Sequence[Reference],
    replacements: Sequence[Replacement | None],
    parameters: Parameters = (),
    functions: Callable[[Path], str | None] | None = None,
) -> QueryPlan:
    """Plans a query. ``replacements``: one for each reference, None where the engine knows the table itself.
    ``functions``: the names to put in the places of functions, None for those that stay.

    Raises InvalidInputError if parameters and values do not match.
    """
    tokens = Tokens(text) if isinstance(text, str) else text
    text = tokens.text
    marker_edits, values = bind_parameters(text, tokens, parameters)
    pairs = [(found, made) for found, made in zip(references, replacements, strict=True) if made is not None]
    edits = [edit for relation, (found, _) in enumerate(pairs) for edit in relation_edits(found, relation)]
    # Time travel and the arguments of a call are gone, with the parameters in them.
    gone = [edit.span for edit in edits]
    call_edits = () if functions is None else tuple(function_edits(tokens, functions))
    edits += [edit for edit in (*marker_edits, *call_edits) if not any(span.start <= edit.span.start < span.end for span in gone)]
    edits += prefix_edits(tokens, references, [(found, made.path) for found, made in pairs])
    edits.sort(key=lambda edit: edit.span)
    if not pairs:
        return QueryPlan(edits=tuple(edits), parameters=values, uses=())
    read: list[Replacement] = []
    view = QueryView(text=text, edits=tuple(edits), replacements=tuple(made for _, made in pairs))
    prefix = fresh_name(PREFIX, *_texts(view))
    named = _with_names(view, prefix, read)
    # sqlglot takes a while to load; a query that reads no table of ours does without it.
    from tablestore.sql.query.querypruning import prune

    uses = prune(named, [one.fields for one in read], values, [one.computed for one in read], prefix)
    return QueryPlan(edits=tuple(edits), parameters=values, uses=uses)


def _texts(view: QueryView) -> Iterator[str]:
    """The texts of a query and of those that it reads like tables."""
    yield view.text
    for made in view.replacements:
        if made.view is not None:
            yield from _texts(made.view)


def _with_names(view: QueryView, prefix: str, read: list[Replacement]) -> str:
    """The text of a query with a name of its own for each relation that it reads, and the text of a view in the place of it."""

    def name(relation: int) -> str:
        made = view.replacements[relation]
        if made.view is not None:
            return f"({_with_names(made.view, prefix, read)})"
        read.append(made)
        return f"{prefix}{len(read) - 1}"

    return apply_edits(view.text, view.edits, name)
