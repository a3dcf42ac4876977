"""TPC-H and TPC-DS of DuckDB's extensions, in a Python of their own: queries, tables, and what queries give.

That Python is made where the benchmarks make it (``benchmarks.peers``). Its part is ``_PROGRAM``, which reads a request as JSON and
answers in JSON; nothing of the benchmarks' texts is kept here.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

_PROGRAM = r"""
import glob, json, os, sys
import duckdb

def canonical(rows):
    def one(value):
        if isinstance(value, bool) or value is None or isinstance(value, str):
            return value
        try:
            return f"{float(value):.6g}"
        except (TypeError, ValueError):
            return str(value).removesuffix(" 00:00:00")
    return sorted(([one(value) for value in row] for row in rows), key=json.dumps)

request = json.load(sys.stdin)
root = glob.glob(os.path.join(os.path.dirname(duckdb.__file__), "..", "duckdb_ext", "extensions", "*", "*"))[0]
answer = {"queries": {}, "columns": [], "tables": {}, "wrong": {}}
for benchmark, generate in (("tpch", "dbgen"), ("tpcds", "dsdgen")):
    con = duckdb.connect(config={"allow_unsigned_extensions": True, "threads": 1})
    con.execute("SET enable_progress_bar = false")  # it goes to standard output
    con.execute(f"LOAD '{root}/{benchmark}.duckdb_extension'")
    con.execute(f"CALL {generate}(sf = {request['scale']})")
    found = con.execute(f"SELECT query_nr, query FROM {benchmark}_queries()").fetchall()
    queries = {f"{benchmark} {number}": text.strip().rstrip(";") for number, text in found}
    answer["queries"] |= queries
    for name, text in queries.items():
        try:
            answer["tables"][name] = sorted(con.get_table_names(text))
        except duckdb.BinderException:  # it binds without types of columns, and refuses some comparisons
            answer["tables"][name] = None
    names = "table_name, column_name, data_type"
    found = con.execute(f"SELECT {names} FROM duckdb_columns() WHERE NOT internal ORDER BY table_name, column_index")
    answer["columns"] += [[benchmark, *column] for column in found.fetchall()]
    for name in queries.keys() & request["compare"].keys():
        expected = canonical(con.execute(queries[name]).fetchall())
        for what, text in request["compare"][name].items():
            try:
                rows = canonical(con.execute(text).fetchall())
            except Exception as error:
                rows = f"{type(error).__name__}: {error}"
            if rows != expected:
                answer["wrong"][f"{name}, {what}"] = [str(rows)[:300], str(expected)[:300]]
json.dump(answer, sys.stdout)
"""


def ask(python: Path, *, scale: float = 0, compare: dict[str, dict[str, str]] | None = None) -> dict[str, Any]:
    """``queries`` by name, ``tables`` that each reads (None: DuckDB does not say), ``columns`` of all tables (benchmark,
    table, column, type), and ``wrong``: which texts of ``compare`` (query -> what -> text) give other rows at this scale."""
    request = json.dumps({"scale": scale, "compare": compare or {}})
    command = [str(python), "-c", _PROGRAM]
    done = subprocess.run(command, input=request, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
