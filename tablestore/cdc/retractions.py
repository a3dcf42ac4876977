"""What does a table need to take a row back?"""

from tablestore.store.context import TableContext
from tablestore.store.producer import INPUT


def needs_whole_rows(context: TableContext) -> bool:
    """Whether all of the row: its rows combine, or its changelog is what is written to it. Else the key is enough."""
    merge = context.settings.merge
    combines = merge is not None and merge.engine != "deduplicate"
    return combines or context.changelog_settings.producer == INPUT
