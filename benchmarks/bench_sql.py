"""What does it cost to understand a long query: to parse it, find its tables, and see which columns and rows it needs of them?

The queries of TPC-DS that have 100 lines or more, in processor time; no table is read. A query of 100 lines may cost 10 ms.
"""

from statistics import median

import tablestore as ts
from benchmarks.measure import Case, Sample, stopwatch
from benchmarks.peers import PeerUnavailable
from benchmarks.report import Bar, Result
from benchmarks.setting import Setting
from benchmarks.tpc import load, prepare
from tablestore.sql.parse.statement import parse_statement
from tablestore.sql.query.plan import Replacement, plan_query
from tablestore.sql.query.tablereferences import references_in
from tablestore.sql.query.tokenstream import Tokens
from tablestore.sql.statements.rows import Query
from tablestore.types.datatypes import Field

SCALE = 0.01
LINES = 100
BOUND_MS = 10.0


def run(setting: Setting) -> None:
    """The question, if there is what makes the queries."""
    with setting.workspace("sql") as space:
        try:
            data = prepare("tpcds", SCALE, space / "data")
        except PeerUnavailable as error:
            setting.report.skipped.append(f"long queries: {error}")
            return
        load(data, space / "warehouse")
        catalog = ts.open_catalog(str(space / "warehouse"))
        fields = {name: catalog.table(f"{data.kind}.{name}").table_schema.fields for name in data.tables}
        texts = {number: text for number, text in data.queries.items() if text.count("\n") + 1 >= LINES}
    lines = {f"query {number}": text.count("\n") + 1 for number, text in texts.items()}
    cases = [Case(f"query {number}", lambda text=text: _understood(text, fields)) for number, text in texts.items()]
    timings = setting.take_turns(cases)
    result = Result(
        name=f"TPC-DS: queries of {LINES} lines or more are parsed and pruned",
        question="What does it cost to know what a long query reads?",
        rows=LINES,
        base=next(iter(timings)),
        timings=timings,
        notes="Lines: " + ", ".join(f"{name}: {count}" for name, count in lines.items()),
    )
    setting.add(result)
    spent = median(timings[name].cpu_median * 1000 * LINES / count for name, count in lines.items())
    setting.add_bar(
        Bar(name=f"parsing and pruning, for {LINES} lines of a query, in processor time", measured=spent, bound=BOUND_MS, unit="ms")
    )


def _understood(text: str, fields: dict[str, tuple[Field, ...]]) -> Sample:
    return stopwatch(lambda: _understand(text, fields))[0]


def _understand(text: str, fields: dict[str, tuple[Field, ...]]) -> None:
    statement = parse_statement(text)
    assert isinstance(statement, Query), "the queries of TPC-DS are queries"
    tokens = Tokens(statement.query.text)
    references = references_in(tokens)
    names = [reference.path.parts[-1] for reference in references]
    plan_query(tokens, references, [Replacement(path=("lake", "tpcds", name), fields=fields[name]) for name in names])
