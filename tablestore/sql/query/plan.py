"""Plans a query whose tables are resolved: the edits of its text, its parameters, and what it uses of each table."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tablestore.sql.query.edits import prefix_edits, relation_edits
from tablestore.sql.query.functions import Called, function_edits
from tablestore.sql.query.parameters import Parameters, bind_parameters
from tablestore.sql.query.parsedquery import NumberedQuery, ParsedQuery
from tablestore.sql.query.tablereferences import Reference
from tablestore.sql.query.tokenstream import Tokens
from tablestore.sql.query.use import Use
from tablestore.sql.source import Edit, Path
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
    """A query that others read like a table: its text, with the replacements that its edits count; ``parsed``: with their names."""

    text: str
    edits: tuple[Edit, ...]
    replacements: tuple[Replacement, ...]
    parsed: ParsedQuery | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPlan:
    """The plan of a query. ``Edit.relation`` counts the replaced references in order. ``uses`` has one use for each, and in the
    place of a view those of its own relations. ``parameters`` are by name. ``parsed``: the query with the names of relations."""

    edits: tuple[Edit, ...]
    parameters: Mapping[str, Any]
    uses: tuple[Use, ...]
    parsed: ParsedQuery


def plan_query(
    text: str | Tokens,
    references: Sequence[Reference],
    replacements: Sequence[Replacement | None],
    parameters: Parameters = (),
    functions: Callable[[Path], Called | None] | None = None,
) -> QueryPlan:
    """Plans a query. ``replacements``: one for each reference, None where the engine knows the table itself.
    ``functions``: the names to put in the places of functions, None for those that stay.

    Raises InvalidInputError if parameters and values do not match.
    """
    tokens = Tokens(text) if isinstance(text, str) else text
    text = tokens.text
    marker_edits, values = bind_parameters(text, tokens, parameters)
    pairs = [
        (reference, replacement) for reference, replacement in zip(references, replacements, strict=True) if replacement is not None
    ]
    edits = [edit for relation, (reference, _) in enumerate(pairs) for edit in relation_edits(reference, relation)]
    # Time travel and the arguments of a call are gone, with the parameters in them.
    replaced_spans = [edit.span for edit in edits]
    call_edits = () if functions is None else tuple(function_edits(tokens, functions))
    edits += [
        edit
        for edit in (*marker_edits, *call_edits)
        if not any(span.start <= edit.span.start < span.end for span in replaced_spans)
    ]
    edits += prefix_edits(tokens, references, [(reference, replacement.path) for reference, replacement in pairs])
    edits.sort(key=lambda edit: edit.span)
    parsed = ParsedQuery.of(text, edits, tokens=tokens)
    uses: tuple[Use, ...] = ()
    if pairs:
        # sqlglot takes a while to load; a query that reads no table of ours does without it.
        from tablestore.sql.query.querypruning import prune

        read: list[Replacement] = []
        query = NumberedQuery(parsed, _numbered([replacement for _, replacement in pairs], read))
        uses = prune(query, [one.fields for one in read], values, [one.computed for one in read])
    return QueryPlan(edits=tuple(edits), parameters=values, uses=uses, parsed=parsed)


def _numbered(replacements: Iterable[Replacement], read: list[Replacement]) -> tuple[int | NumberedQuery, ...]:
    """The numbers of relations among those that are ``read``, to which they are added; for a view its query."""
    numbers: list[int | NumberedQuery] = []
    for replacement in replacements:
        if replacement.view is None:
            numbers.append(len(read))
            read.append(replacement)
        else:
            parsed = replacement.view.parsed or ParsedQuery.of(replacement.view.text, replacement.view.edits)
            numbers.append(NumberedQuery(parsed, _numbered(replacement.view.replacements, read)))
    return tuple(numbers)
