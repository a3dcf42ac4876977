"""Do the windows of a query leave open which of several rows comes first?

    row_number() OVER (PARTITION BY g ORDER BY x)        rows with the same g and x are numbered as the engine likes
    row_number() OVER (PARTITION BY g ORDER BY x, id)    they are not, if id is the primary key

A query over the rows of before may then choose others than the refresh that made the target did: what it says has to go is not what
is there.
"""

from collections.abc import Iterator, Sequence

from sqlglot import exp

from tablestore.sql.incremental.nodes import Block, Keyed, Node, Union
from tablestore.sql.incremental.shapes import SourceShape

# Of a row among its peers; ranks are the same for all of these.
_PLACES = (exp.RowNumber, exp.Ntile, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue)
_ROW_MAKERS = (exp.Explode, exp.Posexplode)

_Key = frozenset[tuple[str, str]]


def nodes_with_ties(node: Node, sources: Sequence[SourceShape]) -> Iterator[Keyed]:
    """The parts whose windows order rows by what several of them may share."""
    if isinstance(node, Union):
        for side in node.sides:
            yield from nodes_with_ties(side, sources)
        return
    block = _block(node)
    if isinstance(node, Keyed) and any(_has_ties(window, block, sources) for window in _windows(block.select)):
        yield node
    for one in block.inputs:
        if not isinstance(one.reads, int):
            yield from nodes_with_ties(one.reads, sources)


def key_among_columns(node: Node, sources: Sequence[SourceShape]) -> frozenset[str] | None:
    """Columns of a part of the query that no two of its rows share; None if none are known."""
    if isinstance(node, Union):
        return None
    select = _block(node).select
    if any(one.find(*_ROW_MAKERS) is not None for one in select.expressions):
        return None
    held = {one.unalias().sql(): one.alias_or_name for one in select.expressions}
    if isinstance(node, Keyed) and next(_windows(select), None) is None:
        names = [held.get(key.sql()) for key in node.keys]
    else:
        key = _key(_block(node), sources)
        names = [None] if key is None else [held.get(exp.column(name, table=table, quoted=True).sql()) for table, name in key]
    return None if None in names else frozenset(name for name in names if name is not None)


def _windows(select: exp.Select) -> Iterator[exp.Window]:
    parts = [*select.expressions, *(select.args[name] for name in ("having", "qualify") if select.args.get(name) is not None)]
    return (window for part in parts for window in part.find_all(exp.Window))


def _has_ties(window: exp.Window, block: Block, sources: Sequence[SourceShape]) -> bool:
    frame = window.args.get("spec")
    by_rows = frame is not None and (frame.args.get("kind") or "").upper() == "ROWS"
    if not by_rows and window.find(*_PLACES) is None:
        return False
    order = window.args.get("order")
    values = [*(window.args.get("partition_by") or ()), *((one.this for one in order.expressions) if order is not None else ())]
    key = _key(block, sources)
    return key is None or not key <= {(value.table, value.name) for value in values if isinstance(value, exp.Column)}


def _key(block: Block, sources: Sequence[SourceShape]) -> _Key | None:
    """Columns of the inputs that no two joined rows share; None if none are known."""
    if block.select.args.get("laterals"):
        return None
    found: set[tuple[str, str]] = set()
    joins = [None, *(block.select.args.get("joins") or ())]
    for one, join in zip(block.inputs, joins, strict=True):
        if join is not None and (join.args.get("kind") or "").upper() in ("SEMI", "ANTI"):
            continue
        names = _primary_key(sources[one.reads]) if isinstance(one.reads, int) else key_among_columns(one.reads, sources)
        if not names:
            return None
        found |= {(one.alias, name) for name in names}
    return frozenset(found)


def _primary_key(source: SourceShape) -> frozenset[str] | None:
    return frozenset(name.lower() for name in source.primary_key) or None


def _block(node: Node) -> Block:
    block = node.block if isinstance(node, Keyed) else node
    assert isinstance(block, Block), "all that is no union"
    return block
