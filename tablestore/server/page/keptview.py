"""Views a view, or a table with a connector: what the catalog keeps of it."""

from dataclasses import dataclass

from tablestore.environment.inspection.showcreate import shown_query
from tablestore.environment.session.objects import View
from tablestore.errors import NotFoundError
from tablestore.names import is_name
from tablestore.options import holds_no_secret
from tablestore.redaction import shown_options
from tablestore.server.page.pagecontext import PageContext


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptView:
    """The page of a view or a table with a connector. ``columns`` are names, and types where they are known."""

    database: str
    name: str
    kind: str
    comment: str | None
    query: str | None
    columns: tuple[tuple[str, str], ...]
    options: tuple[tuple[str, str], ...]


def view_kept(context: PageContext) -> KeptView:
    """The page of the view that the path names. Raises NotFoundError, FormatError for a damaged definition."""
    database, name = context.names["database"], context.names["view"]
    known = is_name(database) and is_name(name) and context.sees(database, name)
    kept = context.kept_object(database, name) if known else None
    if kept is None:
        raise NotFoundError(f"there is no view {database:.150}.{name:.150}", kind="no-such-view")
    is_view = isinstance(kept, View)
    columns = tuple((column, "") for column in kept.columns) if isinstance(kept, View) else ()
    if not isinstance(kept, View) and kept.schema is not None:
        columns = tuple((field.name, str(field.type)) for field in kept.schema)
    return KeptView(
        database=database,
        name=name,
        kind="view" if is_view else f"table of the connector {kept.connector}" if not isinstance(kept, View) else "view",
        comment=kept.comment,
        query=shown_query(kept) if isinstance(kept, View) else None,
        columns=columns,
        options=tuple(sorted(shown_options(kept.options, holds_no_secret).items())),
    )
