"""Decides which rows and columns of a table a caller's queries see: row filters and column masks.

A rule is about one table and some callers, by name or by the role that they have on the table; with neither it is about all, owners
and admins too. Of several rules that apply all filters must hold; two different masks of one column make it NULL.

    row_filter      a condition in SQL, as filters of scans: region = 'eu' AND NOT hidden
    column_masks    column -> SQL (another value of its type: upper(name), '***', a || '-' || b, CAST(id AS BIGINT)), or null

The answer is that of the protocol's call ``auth``: a client asks for it before it plans a query, filters and masks what it reads,
and refuses to write what it may not see whole. It is the client that does so: whoever reads the files needs no door.
What a mask hides is not shown, but a client may still filter by it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tablestore.errors import TablestoreError
from tablestore.server.access.predicatejson import predicate_json
from tablestore.server.access.roles import Principal, Resource, Role
from tablestore.server.access.transformjson import mask_json
from tablestore.types.datatypes import Field
from tablestore.types.filter.filters import parse_filter
from tablestore.types.schema import TableSchema, check_known


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRule:
    """One rule, as it is stored. ``column_masks``: pairs of a column and SQL text; None for NULL."""

    table: Resource
    principals: tuple[str, ...] = ()
    roles: tuple[Role, ...] = ()
    row_filter: str | None = None
    column_masks: tuple[tuple[str, str | None], ...] = ()

    def applies_to(self, principal: Principal, table: Resource) -> bool:
        """True if the rule restricts this caller's queries of ``table``."""
        if table != self.table:
            return False
        if not self.principals and not self.roles:
            return True
        return principal.name in self.principals or principal.role_on(table) in self.roles


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryAuth:
    """The answer of ``auth``: JSON texts of predicates, all of which must hold, and of transforms by column."""

    filter: tuple[str, ...] = ()
    column_masking: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """The body of the protocol's AuthTableQueryResponse."""
        return {"filter": list(self.filter), "columnMasking": dict(self.column_masking)}


def query_auth(
    rules: Sequence[QueryRule], principal: Principal, table: Resource, schema: TableSchema, select: Sequence[str] | None
) -> QueryAuth:
    """The filters and masks of a caller's query of the columns ``select`` (None: all).

    Raises InvalidInputError for a column that does not exist, and for a rule that no longer fits the table: then nothing is read.
    """
    if select is not None:
        check_known(schema, select, "query")
    applying = [rule for rule in rules if rule.applies_to(principal, table)]
    columns = set(schema.field_names if select is None else select)
    filters, masks = list[str](), dict[str, str]()
    for rule in applying:
        rule_filter, rule_masks = _encoded(rule, schema)
        if rule_filter is not None:
            filters.append(rule_filter)
        for name, mask in rule_masks.items():
            if name in columns:
                masks[name] = mask if masks.get(name, mask) == mask else mask_json(None, schema.field(name), schema.fields)
    return QueryAuth(filter=tuple(dict.fromkeys(filters)), column_masking=masks)


def check_rule(rule: QueryRule, schema: TableSchema) -> None:
    """Raise InvalidInputError or UnsupportedError for a rule that does not fit its table, or that clients could not carry out."""
    _encoded(rule, schema)


def _encoded(rule: QueryRule, schema: TableSchema) -> tuple[str | None, dict[str, str]]:
    try:
        predicate = parse_filter(rule.row_filter, schema.fields)
        row_filter = None if predicate is None else predicate_json(predicate, schema.fields)
        masks = {name: mask_json(mask, _column(schema, name), schema.fields) for name, mask in rule.column_masks}
    except TablestoreError as error:
        raise type(error)(f"the rule of {rule.table} for queries: {error}", kind=error.kind) from error
    return row_filter, masks


def _column(schema: TableSchema, name: str) -> Field:
    check_known(schema, [name], "mask")
    return schema.field(name)
