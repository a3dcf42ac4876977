"""Offers blue/green evolution in Python: ``env.evolution("sales").stage("SELECT …")``, ``compare()``, ``promote()`` and so on."""

from collections.abc import Mapping

from tablestore.environment.queryargument import path_of, query_text
from tablestore.environment.session.session import Session
from tablestore.environment.source import NO_SOURCE, Source
from tablestore.materialized.evolution.bluegreen import compare_versions, evolve
from tablestore.materialized.evolution.comparing import CompareReport
from tablestore.names import Names, names_of
from tablestore.sql.statements.materialized import (
    CreateMaterializedTable,
    Discard,
    EvolutionAction,
    Promote,
    Rollback,
    Stage,
)


class TableEvolution:
    """The versions of one materialized table. Each method raises what its statement raises."""

    def __init__(self, session: Session, path: str) -> None:
        self._session, self._path = session, path_of(path)

    def stage(
        self,
        query: str,
        *,
        primary_key: Names | None = None,
        partitioned_by: Names | None = None,
        comment: str | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        """Builds another version beside the table; what is left out stays as it is. ``STAGE AS query``."""
        query_source = query_text(query, what="stage", dialect=self._session.settings.dialect)
        declared = CreateMaterializedTable(
            path=self._path,
            query=query_source.fragment,
            primary_key=names_of(primary_key or ()),
            partitioned_by=names_of(partitioned_by or ()),
            comment=comment,
            options=dict(options or {}),
        )
        clauses = {"(": primary_key, "PARTITIONED": partitioned_by, "COMMENT": comment}
        written = frozenset(word for word, value in clauses.items() if value is not None)
        self._run(Stage(declared=declared, given=written), query_source.source)

    def compare(self) -> CompareReport:
        """The differences of the staged version from the current one; where there is none, the previous version. ``COMPARE``."""
        self._session.check_open()
        return compare_versions(self._session, self._path)

    def promote(self) -> None:
        """Puts the staged version in the place of the table, in one step. ``PROMOTE``."""
        self._run(Promote())

    def rollback(self) -> None:
        """Puts the version before the last promotion back in its place, in one step. ``ROLLBACK``."""
        self._run(Rollback())

    def discard(self) -> None:
        """Drops the staged version; where there is none, the previous one. ``DISCARD``."""
        self._run(Discard())

    def _run(self, action: EvolutionAction, source: Source = NO_SOURCE) -> None:
        self._session.check_open()
        evolve(self._session, self._path, action, source)
