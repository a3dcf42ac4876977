"""Names a relation: catalog, database and table, in backticks."""

from dataclasses import dataclass, field

from dbt.adapters.base.relation import BaseRelation, Policy
from dbt.adapters.contracts.relation import RelationType


@dataclass
class TablestoreQuotePolicy(Policy):
    """All parts are quoted: names of tables are told apart by case."""

    database: bool = True
    schema: bool = True
    identifier: bool = True


@dataclass(frozen=True, eq=False, repr=False)
class TablestoreRelation(BaseRelation):
    """A table, view or materialized table."""

    quote_policy: Policy = field(default_factory=TablestoreQuotePolicy)
    quote_character: str = "`"
    # What a project limits (--empty) is a query in brackets, which may have an alias of the model's.
    require_alias: bool = False
    renameable_relations: frozenset[RelationType] = field(
        default_factory=lambda: frozenset({RelationType.Table, RelationType.View})
    )
    replaceable_relations: frozenset[RelationType] = field(
        default_factory=lambda: frozenset({RelationType.Table, RelationType.View})
    )
