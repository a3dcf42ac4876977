"""Writes the addresses of pages: those of a server, and those of the files of a site, relative to the page that they stand on.

A site is a folder of files, so it has no sorting, no search and no queries, and of long lists only the pages that were written:
where there is nothing to lead to, a link is None and its text stands alone.
"""

import re
from dataclasses import dataclass, field
from hashlib import sha256
from posixpath import dirname, relpath
from typing import Protocol
from urllib.parse import quote, urlencode

SECTIONS = ("overview", "storage", "history", "definition", "readers")
_PLAIN = re.compile(r"[a-z0-9_-]{1,100}")


class Links(Protocol):
    """The addresses of pages. Values of a query that are empty are left out."""

    @property
    def live(self) -> bool:
        """True for those of a server, which answers queries."""
        ...

    def home(self, **query: object) -> str | None:
        """The page of the warehouse."""
        ...

    def table(self, database: str, table: str, section: str = "overview", **query: object) -> str | None:
        """A page of a table."""
        ...

    def changes(self, database: str, table: str, snapshot: int, **query: object) -> str | None:
        """The page of what a commit changed."""
        ...

    def materialized(self, database: str, table: str) -> str | None:
        """The page of a materialized table."""
        ...

    def view(self, database: str, view: str) -> str | None:
        """The page of a view."""
        ...

    def graph(self) -> str | None:
        """The page of the graph."""
        ...

    def jobs(self) -> str | None:
        """The page of jobs."""
        ...

    def jobs_events(self) -> str | None:
        """The stream of the events of jobs."""
        ...

    def query(self, **query: object) -> str | None:
        """The page of a query."""
        ...

    def download(self, **query: object) -> str | None:
        """The result of a query as a file."""
        ...

    def asset(self, name: str) -> str:
        """A file that every page needs."""
        ...


@dataclass(frozen=True, slots=True)
class LiveLinks:
    """The addresses of a server. ``prefix``: where its pages lie; ``queries``: whether the caller may run any."""

    prefix: str = "/page"
    queries: bool = False

    @property
    def live(self) -> bool:
        return True

    def home(self, **query: object) -> str:
        return self._at("", query)

    def table(self, database: str, table: str, section: str = "overview", **query: object) -> str:
        behind = "" if section == "overview" else f"/{section}"
        return self._at(f"/tables/{_part(database)}/{_part(table)}{behind}", query)

    def changes(self, database: str, table: str, snapshot: int, **query: object) -> str:
        return self._at(f"/tables/{_part(database)}/{_part(table)}/history/{snapshot}", query)

    def materialized(self, database: str, table: str) -> str:
        return self._at(f"/materialized/{_part(database)}/{_part(table)}", {})

    def view(self, database: str, view: str) -> str:
        return self._at(f"/views/{_part(database)}/{_part(view)}", {})

    def graph(self) -> str:
        return self._at("/graph", {})

    def jobs(self) -> str:
        return self._at("/jobs", {})

    def jobs_events(self) -> str:
        return self._at("/jobs/events", {})

    def query(self, **query: object) -> str | None:
        return self._at("/query", query) if self.queries else None

    def download(self, **query: object) -> str | None:
        return self._at("/query/result", query) if self.queries else None

    def asset(self, name: str) -> str:
        return self._at(f"/static/{name}", {})

    def _at(self, path: str, query: dict[str, object]) -> str:
        pairs = {key.replace("_", "-"): value for key, value in query.items() if value not in (None, "", 0)}
        return f"{self.prefix}{path}" + (f"?{urlencode(pairs)}" if pairs else "") or "/"


@dataclass(frozen=True, slots=True)
class SiteLinks:
    """The addresses of the files of a site, from the page at ``here``. ``pages``: those that are written."""

    here: str
    pages: frozenset[str] = field(repr=False)

    @property
    def live(self) -> bool:
        return False

    def home(self, **query: object) -> str | None:
        return self._to(home_page(_page(query)))

    def table(self, database: str, table: str, section: str = "overview", **query: object) -> str | None:
        return self._to(table_page(database, table, section, _page(query)))

    def changes(self, database: str, table: str, snapshot: int, **query: object) -> str | None:
        return None if _page(query) > 1 else self._to(changes_page(database, table, snapshot))

    def materialized(self, database: str, table: str) -> str | None:
        return self._to(materialized_page(database, table))

    def view(self, database: str, view: str) -> str | None:
        return self._to(view_page(database, view))

    def graph(self) -> str | None:
        return self._to(GRAPH_PAGE)

    def jobs(self) -> str | None:
        return self._to(JOBS_PAGE)

    def jobs_events(self) -> None:
        return None

    def query(self, **query: object) -> None:
        return None

    def download(self, **query: object) -> None:
        return None

    def asset(self, name: str) -> str:
        return relpath(f"static/{name}", dirname(self.here) or ".")

    def _to(self, page: str) -> str | None:
        return relpath(page, dirname(self.here) or ".") if page in self.pages else None


GRAPH_PAGE, JOBS_PAGE = "graph.html", "jobs.html"


def home_page(page: int = 1) -> str:
    """The file of a part of the list of tables."""
    return "index.html" if page == 1 else f"index-{page}.html"


def table_page(database: str, table: str, section: str = "overview", page: int = 1) -> str:
    """The file of a page of a table."""
    name = "index" if section == "overview" else section
    return f"{_folder('tables', database, table)}/{name}{'' if page == 1 else f'-{page}'}.html"


def changes_page(database: str, table: str, snapshot: int) -> str:
    """The file of what a commit changed."""
    return f"{_folder('tables', database, table)}/snapshot-{snapshot}.html"


def materialized_page(database: str, table: str) -> str:
    """The file of a materialized table."""
    return f"{_folder('materialized', database, table)}.html"


def view_page(database: str, view: str) -> str:
    """The file of a view."""
    return f"{_folder('views', database, view)}.html"


def _folder(kind: str, database: str, name: str) -> str:
    return f"{kind}/{file_slug(database)}/{file_slug(name)}"


def file_slug(name: str) -> str:
    """A name as that of a file on any system: small letters, digits, ``_`` and ``-``; others have a digest behind."""
    if _PLAIN.fullmatch(name):
        return name
    plain = re.sub(r"[^a-z0-9_-]+", "-", name.lower())[:80].strip("-") or "name"
    return f"{plain}.{sha256(name.encode()).hexdigest()[:10]}"


def _page(query: dict[str, object]) -> int:
    return int(str(query.get("page") or 1))


def _part(name: str) -> str:
    return quote(name, safe="")
