"""Shows a catalog in notebooks: its databases, and the first of its tables with their figures.

Of what grows without end the first is shown: the names of ``MOST_DATABASES`` databases, and the figures of ``MOST_TABLES`` tables.
"""

from collections.abc import Callable, Sequence

from tablestore.errors import TablestoreError
from tablestore.htmltext import HtmlText, html_card, html_element, html_join, html_table
from tablestore.store.context import TableContext
from tablestore.table.inspect.tablefigures import figures_of_table
from tablestore.timepoint import utc_text
from tablestore.units import human_bytes

MOST_DATABASES = 20
MOST_TABLES = 20
_HEADS = ("table", "kind", "rows", "files", "size", "snapshot", "newest commit")
_NUMBERS = (2, 3, 4, 5)


def catalog_card(
    location: str,
    databases: Sequence[str],
    tables: Callable[[str], Sequence[str]],
    context: Callable[[str], TableContext | None],
) -> HtmlText:
    """The card. ``tables``: those of a database; ``context``: the state of ``database.table``, None of what is no table of ours."""
    shown = databases[:MOST_DATABASES]
    facts: list[str] = []
    names: list[str] = []
    for database in shown:
        try:
            held = tables(database)
        except TablestoreError as error:
            # One that another process is dropping hides no other.
            facts.append(f"{database} (cannot be read: {error.kind})")
            continue
        facts.append(f"{database} ({len(held):,})")
        names += [f"{database}.{table}" for table in held]
    if len(databases) > len(shown):
        facts.append(f"and {len(databases) - len(shown):,} more")
    card = HtmlText(html_card("Catalog", location, {"databases (tables)": ", ".join(facts) or "none"}))
    lines = html_table(_HEADS, [_line(name, context) for name in names[:MOST_TABLES]], _NUMBERS)
    more = f"{len(names) - MOST_TABLES:,} more tables" if len(names) > MOST_TABLES else ""
    return html_join([card, *([lines] if names else []), *([html_element("p", None, more)] if more else [])])


def _line(name: str, context: Callable[[str], TableContext | None]) -> Sequence[object]:
    try:
        opened = context(name)
        if opened is None:
            return (name, "", "", "", "", "", "")
        figures = figures_of_table(opened)
    except TablestoreError as error:
        return (name, f"cannot be read: {error.kind}", "", "", "", "", "")
    size, number = human_bytes(figures.size_bytes), "" if figures.snapshot_id is None else f"{figures.snapshot_id:,}"
    when = "" if figures.time_ms is None else utc_text(figures.time_ms)
    return (name, figures.kind, figures.rows_text, f"{figures.files:,}", size, number, when)
