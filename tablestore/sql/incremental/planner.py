"""Plans the queries that compute the change of a query's rows from the changes of its sources, if there are such.

    plan = plan_incremental(text, source_of=…, sources=…, target=…)      an IncrementalPlan, or FullRefresh with a reason
    rows = plan.change(changed, run)                                     run: what runs its queries, step by step

The rows are those that come and go: the columns of the target, and the weight, how many times a row comes (positive) or goes
(negative). No row is there twice, and none with a weight of 0. The names in the queries: :mod:`tablestore.sql.incremental.shapes`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from tablestore.sql.depth import deep
from tablestore.sql.incremental.building import build
from tablestore.sql.incremental.groupstate import GroupState, group_state
from tablestore.sql.incremental.keyliterals import literal_kind
from tablestore.sql.incremental.nodes import (
    Keyed,
    Node,
    Steps,
    aliased,
    named,
    projected,
    renamed,
    target_rows,
    union_all,
    weighed,
    with_weight,
)
from tablestore.sql.incremental.reading import read_query
from tablestore.sql.incremental.rowkeys import names_rows
from tablestore.sql.incremental.shapes import (
    WEIGHT,
    FullRefresh,
    NoRuleError,
    ReadTarget,
    RunStep,
    SourceShape,
    TargetShape,
    check_names,
)
from tablestore.sql.incremental.ties import nodes_with_ties
from tablestore.types.datatypes import Field, MapType, MultisetType, types_in


@dataclass(frozen=True, slots=True)
class IncrementalPlan:
    """The rules for one query and target. It holds no snapshot: one plan serves all refreshes.

    ``names``: all names of columns in it, in small letters; no other column of a source is read.
    """

    node: Node
    outputs: tuple[tuple[str, Field], ...]
    names: frozenset[str]
    kinds: Mapping[tuple[int, str], str | None]
    state: GroupState | None = None
    is_unique: bool = True
    """True if no two rows of the query can have one primary key of the target, if that has any. Where they can, one row may go
    while another of its key stays, which the rows that go do not show."""

    def change(
        self,
        changed: frozenset[int],
        run: RunStep,
        changes: Mapping[int, pa.Table] | None = None,
        target: ReadTarget = lambda names, most: None,
    ) -> pa.Table | None:
        """The rows that come and go, each once; ``run`` runs the queries. None if nothing can have changed.

        ``changes``: those of sources that the caller has at hand; where they are few, scans are told which values to look for.
        ``target``: its rows, where a few of these are enough.
        """
        with deep():
            steps = Steps(changed, run, changes or {}, self.kinds, target)
            if self.state is None:
                return self._added_up(self._terms(steps), steps)
            known_rows, terms = self.state.change(steps)
            other_rows = self._added_up(terms, steps)
            tables = [rows for rows in (known_rows, other_rows) if rows is not None]
            # No group is in both.
            return pa.concat_tables(tables, promote_options="permissive") if tables else None

    def is_replaced_by_key(self, node: Keyed) -> bool:
        """True if the rows of a part that go are those that the target has, and not those that its query gives."""
        return node is self.node and self._keys_in_target(node) is not None

    def has_key(self, primary_key: Sequence[str], sources: Sequence[SourceShape]) -> bool:
        """True if each row has a primary key of its own, or goes and comes with all others of its key. True without a key."""
        if not primary_key:
            return True
        if isinstance(self.node, Keyed) and (keys := self._keys_in_target(self.node)) is not None and set(keys) <= set(primary_key):
            return True
        return names_rows([name for name, field in self.outputs if field.name in primary_key], self.node, sources)

    def _added_up(self, terms: list[exp.Select], steps: Steps) -> pa.Table | None:
        if len(terms) > 1:
            # Each is a query of its own: names of columns that mean one thing in it do not meet those of the target.
            kept = [steps.keep(term) for term in terms]
            terms = [_all_of(name, self.node.columns) for name, rows in kept if rows.num_rows]
        return steps.keep(_netted(terms, self.outputs))[1] if terms else None

    def _terms(self, steps: Steps) -> list[exp.Select]:
        if isinstance(self.node, Keyed) and (keys := self._keys_in_target(self.node)) is not None:
            name, rows = self.node.changed_keys(steps)
            if not rows.num_rows:
                return []
            computed = weighed(self.node.limited("new", name, rows), self.node.columns, 1)
            return [computed, target_rows(self.outputs, keys, name, rows)]
        return self.node.terms(steps)

    def _keys_in_target(self, node: Keyed) -> tuple[str, ...] | None:
        """The target's columns that hold the keys of its rows, if all are there: the rows to go are then read from it."""
        held = {one.unalias().sql(): one.alias_or_name for one in node.block.select.expressions}
        fields = dict(self.outputs)
        names = [held.get(key.sql()) for key in node.keys]
        return tuple(fields[name].name for name in names if name is not None) if None not in names else None


def plan_incremental(
    text: str, *, source_of: Sequence[int], sources: Sequence[SourceShape], target: TargetShape
) -> IncrementalPlan | FullRefresh:
    """Plans the refreshes of a query. ``source_of``: the source that each of its table references reads, in order."""
    try:
        check_names((text, *(field.name for fields in (target.fields, *(one.fields for one in sources)) for field in fields)))
        tree = read_query(text, source_of, sources)
        names = frozenset(column.name for column in tree.find_all(exp.Column))
        node = build(tree)
        outputs = _outputs(node, target)
        kinds = {
            (number, field.name.lower()): literal_kind(field.type) for number, one in enumerate(sources) for field in one.fields
        }
        state = group_state(node, outputs, sources)
        if state is None and isinstance(node, Keyed) and not node.keys:
            raise NoRuleError(
                "it aggregates all rows in one group, and not all of its columns follow from their last values: count, min, max, "
                "constants, and sums of whole numbers and short decimals do"
            )
        plan = IncrementalPlan(node, outputs, names, kinds, state)
        if any(not plan.is_replaced_by_key(tied_node) for tied_node in nodes_with_ties(node, sources)):
            raise NoRuleError(
                "a window of it orders rows by columns in which several may be equal; add those of the primary key to its ORDER BY"
            )
        return replace(plan, is_unique=plan.has_key(target.primary_key, sources))
    except NoRuleError as error:
        return FullRefresh(error.reason, error.repeatable)


def _outputs(node: Node, target: TargetShape) -> tuple[tuple[str, Field], ...]:
    """Each column of the query with that of the target: by name where the names are the same, else by place."""
    columns, fields = node.columns, target.fields
    if len(columns) != len(fields) or len(set(columns)) < len(columns):
        raise NoRuleError(f"it has {len(columns)} columns or two of one name, and the table {len(fields)}")
    for field in fields:
        if any(isinstance(part_type, (MapType, MultisetType)) for part_type in types_in(field.type)):
            raise NoRuleError(f"column {field.name} is a map, and SQL does not compare maps")
    by_name = {field.name.lower(): field for field in fields}
    if set(by_name) == set(columns):
        return tuple((name, by_name[name]) for name in columns)
    return tuple(zip(columns, fields, strict=True))


def _all_of(step: str, columns: Sequence[str]) -> exp.Select:
    values = [(exp.column(name, table=step, quoted=True), name) for name in [*columns, WEIGHT]]
    return projected(exp.select().from_(named(step, step)), values)


def _netted(terms: Sequence[exp.Select], outputs: Sequence[tuple[str, Field]]) -> exp.Select:
    """Terms added up, with the names of the target's columns."""
    names = [name for name, _ in outputs]
    together = aliased(union_all([renamed(term, names) for term in terms]), "terms")
    columns = [exp.column(name, table="terms", quoted=True) for name in names]
    total = exp.Sum(this=exp.column(WEIGHT, table="terms", quoted=True))
    added = projected(
        exp.select().from_(together), [(column, field.name) for column, (_, field) in zip(columns, outputs, strict=True)]
    )
    added = with_weight(added, exp.cast(total.copy(), "bigint")).group_by(*columns, copy=False)
    return added.having(exp.NEQ(this=total, expression=exp.Literal.number(0)), copy=False)
