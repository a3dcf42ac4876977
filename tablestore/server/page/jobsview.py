"""Views the jobs of the process and the newest refreshes of materialized tables, and writes them as server-sent events."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

from tablestore.errors import TablestoreError
from tablestore.materialized.figures.freshnessfigures import FreshnessFigures
from tablestore.server.page.pagecontext import JobLine, PageContext
from tablestore.table.catalog import Catalog
from tablestore.tableenvironment import TableEnvironment

MOST_TABLES = 50
REFRESHES_A_TABLE = 5
MOST_LINES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsView:
    """Jobs of the process, and refreshes, both newest first."""

    jobs: tuple[JobLine, ...]
    refreshes: tuple[JobLine, ...]
    now_ms: int


def view_jobs(context: PageContext) -> JobsView:
    """The jobs and refreshes that the caller sees."""
    return visible_view(context, survey_refreshes(context.catalog, context.sees))


def survey_refreshes(catalog: Catalog, is_wanted: Callable[[str, str], bool]) -> tuple[JobLine, ...]:
    """The newest refreshes of the first :data:`MOST_TABLES` tables that are wanted, newest first."""
    lines: list[JobLine] = []
    with TableEnvironment.create(catalog) as environment:
        wanted = (one for one in environment.freshness() if is_wanted(one.table.database, one.table.name))
        for figures in islice(wanted, MOST_TABLES):
            lines += _refreshes(environment, figures)
    return tuple(sorted(lines, key=lambda line: -(line.began_ms or 0)))


def visible_view(context: PageContext, refreshes: Sequence[JobLine]) -> JobsView:
    """The part of these refreshes, and of the jobs, that the caller sees."""
    seen = [line for line in refreshes if line.database is not None and context.sees(line.database, line.table)]
    jobs = sorted(
        context.visible_jobs(), key=lambda line: (line.status != "RUNNING", line.status != "FAILED", -(line.began_ms or 0))
    )
    return JobsView(jobs=tuple(jobs[:MOST_LINES]), refreshes=tuple(seen[:MOST_LINES]), now_ms=context.now_ms)


def _refreshes(environment: TableEnvironment, figures: FreshnessFigures) -> list[JobLine]:
    database, name = figures.table.database, figures.table.name
    lines = []
    if figures.error is not None:
        what = "refresh" if figures.error.during == "refresh" else "alteration"
        lines.append(
            JobLine(
                id=f"{database}.{name}/error",
                what=what,
                database=database,
                table=name,
                status="FAILED",
                began_ms=figures.error.at_ms,
                detail=figures.error.message,
            )
        )
    try:
        history = environment.refresh_history(f"`{database}`.`{name}`")
    except TablestoreError:
        # It was dropped meanwhile.
        history = ()
    for past in history[:REFRESHES_A_TABLE]:
        lines.append(
            JobLine(
                id=f"{database}.{name}/{past.snapshot_id}",
                what=f"{past.mode} refresh",
                database=database,
                table=name,
                status="FINISHED",
                began_ms=past.at_ms,
                took_ms=past.took_ms,
                rows_in=past.rows_in,
                rows_out=past.rows_out,
                detail=past.reason,
            )
        )
    return lines


def server_sent_event(name: str, html: str, *, retry_ms: int = 3_000) -> bytes:
    """One event with a part of a page, which the page puts in the place of the old one."""
    data = "\n".join(f"data: {line}" for line in html.splitlines())
    return f"event: {name}\nretry: {retry_ms}\n{data}\n\n".encode()
