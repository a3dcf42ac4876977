"""Finds windows of a query that leave open which of several rows comes first.

    row_number() OVER (PARTITION BY g ORDER BY x)        rows with the same g and x are numbered as the engine likes
    row_number() OVER (PARTITION BY g ORDER BY x, id)    they are not, if id is the primary key

A query over the rows of before may then choose others than the refresh that made the target did: what it says has to go is not what
is there.
"""

from collections.abc import Iterator, Sequence

from sqlglot import exp

from tablestore.sql.incremental.nodes import Block, Keyed, Node, Union
from tablestore.sql.incremental.rowkeys import block_of, names_joined_rows, windows_of
from tablestore.sql.incremental.shapes import SourceShape

# Functions that depend on the place of a row among its peers; ranks are the same for all of these.
_PLACES = (exp.RowNumber, exp.Ntile, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue)


def nodes_with_ties(node: Node, sources: Sequence[SourceShape]) -> Iterator[Keyed]:
    """The parts whose windows order rows by what several of them may share."""
    if isinstance(node, Union):
        for side in node.sides:
            yield from nodes_with_ties(side, sources)
        return
    block = block_of(node)
    if isinstance(node, Keyed) and any(_has_ties(window, block, sources) for window in windows_of(block.select)):
        yield node
    for one in block.inputs:
        if not isinstance(one.reads, int):
            yield from nodes_with_ties(one.reads, sources)


def _has_ties(window: exp.Window, block: Block, sources: Sequence[SourceShape]) -> bool:
    frame = window.args.get("spec")
    by_rows = frame is not None and (frame.args.get("kind") or "").upper() == "ROWS"
    if not by_rows and window.find(*_PLACES) is None:
        return False
    order = window.args.get("order")
    values = [*(window.args.get("partition_by") or ()), *((one.this for one in order.expressions) if order is not None else ())]
    return not names_joined_rows({(value.table, value.name) for value in values if isinstance(value, exp.Column)}, block, sources)
