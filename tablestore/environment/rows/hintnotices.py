"""Says which hints of a statement do nothing: in its own text, and in the queries of the temporary views that it reads.

/*+ BROADCAST(t) */                                 where the engine takes no hints of Spark
/*+ OPTIONS('log.scan' = 'latest') */               for readers that follow changes; a query reads one snapshot
"""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from tablestore.environment.objectpath import MOST_PARTS, ObjectPath
from tablestore.environment.result import Notice, hints_left_out, reads_one_snapshot
from tablestore.environment.rows.dynamicoptions import changes_nothing
from tablestore.environment.session.objects import ConnectorTable, View
from tablestore.environment.session.session import Place, Session
from tablestore.environment.source import Source
from tablestore.sql.query.hints import engine_hints
from tablestore.sql.query.tablereferences import Reference, references_in
from tablestore.sql.query.tokenstream import Tokens
from tablestore.sql.source import Fragment
from tablestore.sql.sqldialect import SqlDialect


def hint_notices(session: Session, statement: object, source: Source) -> Iterator[Notice]:
    """One notice for each kind of hint that does nothing in a statement that has succeeded. ``source``: the text that it was read
    from, if it was."""
    hinted = source.text == "" or _has_hints(source.text)
    hinted = hinted and any(map(_has_hints, _fragments(statement)))
    for view in session.objects.views():
        hinted = hinted or (isinstance(view, View) and view.dialect is SqlDialect.SPARK and _has_hints(view.query))
    if not hinted:
        return
    texts = [(text, session.place) for text in _fragments(statement)]
    of_engine: dict[str, None] = {}
    of_followers: dict[str, None] = {}
    seen: set[ObjectPath] = set()
    while texts:
        text, place = texts.pop(0)
        of_engine |= dict.fromkeys(engine_hints(text))
        for reference in references_in(Tokens(text), is_whole=False):
            named_object = _object(session, reference, place)
            if isinstance(named_object, View) and named_object.dialect is not SqlDialect.SPARK:
                continue
            if isinstance(named_object, View) and named_object.path not in seen:
                seen.add(named_object.path)
                texts.append((named_object.query, (named_object.catalog, named_object.database)))
            elif not isinstance(named_object, ConnectorTable):
                of_followers |= {f"{one.key} = {one.value}": None for one in reference.options if changes_nothing(one)}
    if of_engine and session.engine is not None and not session.engine.takes_hints:
        yield hints_left_out(session.engine.name, of_engine)
    if of_followers and not session.settings.is_streaming:
        yield reads_one_snapshot(of_followers)


def _object(session: Session, reference: Reference, place: Place) -> object:
    """The view or the table with a connector that a name stands for."""
    if len(reference.path.parts) > MOST_PARTS:
        return None
    path = session.expand(reference.path, place=place)
    return session.objects.temporary(path) or session.kept.find(path)


def _has_hints(text: str) -> bool:
    return "/*+" in text


def _fragments(part: object) -> Iterator[str]:
    """The parts of the user's text in a statement: queries, conditions, expressions."""
    if isinstance(part, Fragment):
        # Hints in DuckDB's words are comments, but for OPTIONS.
        if part.dialect is SqlDialect.SPARK:
            yield part.text
    elif isinstance(part, tuple):
        for one in part:
            yield from _fragments(one)
    elif is_dataclass(part):
        for field in fields(part):
            yield from _fragments(getattr(part, field.name))
