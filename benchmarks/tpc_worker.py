"""Makes the data, the queries and the answers of TPC-H or TPC-DS; runs in an environment of its own.

``python tpc_worker.py tpch 0.01 DIRECTORY`` writes there ``tables/<name>.parquet``, ``queries.json``, ``answers/<number>.parquet``.
"""

import json
import sys
from pathlib import Path

import duckdb

GENERATORS = {"tpch": "dbgen", "tpcds": "dsdgen"}


def main(kind: str, scale: float, directory: Path) -> None:
    """Make everything."""
    extensions = Path(duckdb.__file__).parent.parent / "duckdb_ext" / "extensions"
    (extension,) = extensions.rglob(f"{kind}.duckdb_extension")
    con = duckdb.connect(config={"allow_unsigned_extensions": True})
    con.execute(f"LOAD '{extension}'")
    con.execute(f"CALL {GENERATORS[kind]}(sf={scale})")
    for folder in ("tables", "answers"):
        (directory / folder).mkdir(parents=True, exist_ok=True)
    for (name,) in con.execute("SELECT table_name FROM duckdb_tables()").fetchall():
        # The codec of our data files, so that the ways to read are compared and not the codecs.
        con.execute(f"COPY {name} TO '{directory}/tables/{name}.parquet' (COMPRESSION zstd)")
    queries = dict(con.execute(f"SELECT query_nr, query FROM {kind}_queries()").fetchall())
    for number, query in queries.items():
        con.execute(f"COPY ({query.strip().rstrip(';')}) TO '{directory}/answers/{number}.parquet'")
    (directory / "queries.json").write_text(json.dumps(queries))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), Path(sys.argv[3]))
