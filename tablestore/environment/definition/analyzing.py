"""Runs ANALYZE TABLE: counts the rows of a managed table, and what its columns hold."""

from tablestore.environment.result import Result, landed
from tablestore.environment.session.session import Session, placing
from tablestore.environment.session.statements import by_engine
from tablestore.environment.source import Source
from tablestore.errors import NotFoundError, UnsupportedError
from tablestore.names import did_you_mean
from tablestore.sql.statements.alter import AnalyzeTable
from tablestore.sql.statements.session import EngineStatement
from tablestore.table.upkeep.analysis import analyze


def analyze_table(session: Session, statement: AnalyzeTable, source: Source) -> Result:
    """Gives the snapshot of the commit that keeps the numbers, None before the table has one.

    A table of the engine's own is its business.
    Raises NotFoundError for a column that is not there, UnsupportedError for statistics of partitions or without a scan.
    """
    target = session.find(statement.path, source)
    if target is None:
        return by_engine(session, EngineStatement(text=statement.text), source)
    table = session.checked_table(target, statement.path, "ANALYZE TABLE", source)
    if statement.refused is not None:
        raise UnsupportedError(
            source.mark(
                f"ANALYZE TABLE … {statement.refused} is not supported for {table.name}: statistics are those of the whole table, "
                "and SHOW PARTITIONS and the table $partitions count without a scan; leave it out",
                source.word(statement.refused, statement.text.span),
            ),
            kind="unsupported",
        )
    context = table.context.still_there()
    names = context.schema.field_names
    by_lower = {name.lower(): name for name in names}
    columns = names if statement.columns is None else [_column(name, names, by_lower) for name in statement.columns]
    with placing(source, statement.path.span):
        return landed(analyze(context, dict.fromkeys(columns)))


def _column(name: str, names: tuple[str, ...], by_lower: dict[str, str]) -> str:
    if name in names:
        return name
    if name.lower() not in by_lower:
        raise NotFoundError(
            f"ANALYZE TABLE … FOR COLUMNS: no stored column {name!r:.80}{did_you_mean(name, names)}", kind="no-such-column"
        )
    return by_lower[name.lower()]
