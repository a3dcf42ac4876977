"""Finds out whether columns of a part of a query name its rows: no two rows share their values.

    FROM orders o JOIN people p ON o.person = p.id       o.id does: it is the key of o, and says which p.id there is
    FROM orders o LEFT JOIN people p ON o.person = p.id  so it does: one person at most is found for an order
    FROM orders o JOIN visits v ON o.person = v.person   o.id alone does not, o.id and the key of v do
    FROM orders o FULL JOIN bills b ON o.id = b.id       coalesce(o.id, b.id) does, where both are keys

Only what follows from primary keys, groups and equalities of columns is known; NULL equals NULL here.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence

from sqlglot import exp

from tablestore.sql.incremental.keyliterals import literal_kind
from tablestore.sql.incremental.nodes import Block, Input, Keyed, Node, Union
from tablestore.sql.incremental.reading import conjuncts
from tablestore.sql.incremental.shapes import SourceShape
from tablestore.types.datatypes import AtomicType, DataType, TypeRoot, is_float, with_nullable

_ROW_MAKERS = (exp.Explode, exp.Posexplode)

_Column = tuple[str, str]
"""The alias of an input, and the name of a column of it."""


def names_rows(columns: Collection[str], node: Node, sources: Sequence[SourceShape]) -> bool:
    """True if no two rows of a part of the query share these columns of it."""
    if isinstance(node, Union):
        return _names_full_join(columns, node, sources)
    block = block_of(node)
    selected = {one.alias_or_name: one.unalias() for one in block.select.expressions}
    if any(value.find(*_ROW_MAKERS) is not None for value in selected.values()):
        return False
    held = [selected[name] for name in columns if name in selected]
    known_columns = {column for value in held if (column := _column_of(value)) is not None}
    if isinstance(node, Keyed) and next(windows_of(block.select), None) is None:
        texts, following = {value.sql() for value in held}, _following(block, known_columns, sources)[0]
        return all(key.sql() in texts or (isinstance(key, exp.Column) and (key.table, key.name) in following) for key in node.keys)
    return names_joined_rows(known_columns, block, sources)


def _column_of(value: exp.Expr) -> _Column | None:
    """A column, or the first that is not NULL of two columns of one input, which counts as another column of it."""
    if isinstance(value, exp.Column):
        return value.table, value.name
    if isinstance(value, exp.Coalesce) and len(value.expressions) == 1:
        both = [value.this, *value.expressions]
        if all(isinstance(one, exp.Column) for one in both) and both[0].table == both[1].table:
            return both[0].table, _either(one.name for one in both)
    return None


def _either(names: Iterable[str]) -> str:
    return f"coalesce({', '.join(sorted(names))})"


def _names_full_join(columns: Collection[str], union: Union, sources: Sequence[SourceShape]) -> bool:
    """True if the values that a FULL JOIN compares are there in all of its rows, and name the rows of both of its sides."""
    if not union.apart or any(_either(pair) not in columns for pair in union.apart):
        return False
    for place, side in enumerate(union.sides):
        names, block = [pair[place] for pair in union.apart], block_of(side)
        values = {one.alias_or_name: one.unalias() for one in block.select.expressions}
        types = [_type_of(values[name], block, sources) for name in names]
        if any(value_type is None or value_type.nullable for value_type in types) or not names_rows(names, side, sources):
            return False
    return True


def names_joined_rows(columns: Collection[_Column], block: Block, sources: Sequence[SourceShape]) -> bool:
    """True if no two of the joined rows of a block share these columns of its inputs."""
    if block.select.args.get("laterals"):
        return False
    named = _following(block, columns, sources)[1]
    return all(one.alias in named for one, join in _joined(block) if not _only_filters(join))


def windows_of(select: exp.Select) -> Iterator[exp.Window]:
    """The windows of a SELECT itself."""
    parts = [*select.expressions, *(select.args[name] for name in ("having", "qualify") if select.args.get(name) is not None)]
    return (window for part in parts for window in part.find_all(exp.Window))


def block_of(node: Node) -> Block:
    """The block of a part that is no union."""
    block = node.block if isinstance(node, Keyed) else node
    assert isinstance(block, Block), "all that is no union"
    return block


def _following(block: Block, columns: Collection[_Column], sources: Sequence[SourceShape]) -> tuple[set[_Column], set[str]]:
    """The columns that joined rows share if they share some, and the inputs of which they have the same row."""
    known_columns, named = set(columns), set[str]()
    equalities = list(_equal_columns(block, sources))
    size = -1
    while size != len(known_columns) + len(named):
        size = len(known_columns) + len(named)
        known_columns |= {pair[1 - side] for pair in equalities for side in (0, 1) if pair[side] in known_columns}
        before: list[str] = []
        for one, join in _joined(block):
            if _only_filters(join):
                continue
            have = {name for alias, name in known_columns if alias == one.alias}
            have |= {equality.inner.name for equality in one.equalities if _alike(equality.outer, equality.inner, block, sources)}
            # The right side of a LEFT JOIN is known by the rows on the left: these values, or none where nothing is found.
            if (not one.equalities or named.issuperset(before)) and _names_input(have, one, sources):
                named.add(one.alias)
                known_columns |= {(one.alias, name) for name in _column_names(one, sources)}
            before.append(one.alias)
    return known_columns, named


def _names_input(columns: Collection[str], block_input: Input, sources: Sequence[SourceShape]) -> bool:
    if not isinstance(block_input.reads, int):
        return names_rows(columns, block_input.reads, sources)
    key = {name.lower() for name in sources[block_input.reads].primary_key}
    return bool(key) and key <= set(columns)


def _column_names(block_input: Input, sources: Sequence[SourceShape]) -> Sequence[str]:
    return (
        [field.name.lower() for field in sources[block_input.reads].fields]
        if isinstance(block_input.reads, int)
        else block_input.reads.columns
    )


def _equal_columns(block: Block, sources: Sequence[SourceShape]) -> Iterator[tuple[_Column, _Column]]:
    """The columns that are equal in each of the joined rows."""
    conditions = list(conjuncts(block.select.args.get("where")))
    for one, join in _joined(block):
        if join is not None and not one.equalities:
            conditions += conjuncts(join.args.get("on"))
    for condition in conditions:
        if not isinstance(condition, (exp.EQ, exp.NullSafeEQ)):
            continue
        left, right = condition.left, condition.right
        if isinstance(left, exp.Column) and isinstance(right, exp.Column) and _alike(left, right, block, sources):
            yield (left.table, left.name), (right.table, right.name)


def _alike(one: exp.Expr, other: exp.Expr, block: Block, sources: Sequence[SourceShape]) -> bool:
    """True if both are columns in whose types a value equals one other only: the texts '1' and '01' both equal the number 1."""
    types = [_type_of(side, block, sources) for side in (one, other)]
    if types[0] is None or types[1] is None:
        return False
    kinds = [literal_kind(side_type) for side_type in types if side_type is not None]
    if kinds[0] is not None or kinds[1] is not None:
        return kinds[0] == kinds[1]
    plain = isinstance(types[0], AtomicType) and types[0].root is not TypeRoot.CHAR and not is_float(types[0])
    return plain and with_nullable(types[0], True) == with_nullable(types[1], True)


def _type_of(value: exp.Expr, block: Block, sources: Sequence[SourceShape]) -> DataType | None:
    """The type of a column of a source, also where it comes through a part of the query; None if it is not known."""
    if not isinstance(value, exp.Column):
        return None
    reads = next((one.reads for one in block.inputs if one.alias == value.table), None)
    if isinstance(reads, int):
        return next((field.type for field in sources[reads].fields if field.name.lower() == value.name), None)
    if reads is None or isinstance(reads, Union):
        return None
    inner = block_of(reads)
    inner_value = next((one.unalias() for one in inner.select.expressions if one.alias_or_name == value.name), None)
    return None if inner_value is None else _type_of(inner_value, inner, sources)


def _joined(block: Block) -> Iterator[tuple[Input, exp.Join | None]]:
    return zip(block.inputs, [None, *(block.select.args.get("joins") or ())], strict=True)


def _only_filters(join: exp.Join | None) -> bool:
    return join is not None and (join.args.get("kind") or "").upper() in ("SEMI", "ANTI")
