"""Plans of deltalake and pyiceberg, in a process of its own, timed inside: what the process takes to start does not count.

python plan_worker.py deltalake|pyiceberg build DIRECTORY FILES    a table of these files (lines of JSON: name, day, low, high)
python plan_worker.py deltalake|pyiceberg plan DIRECTORY QUESTION  all, day=<ISO date> or id=<number>; prints files, wall, cpu
"""

import gc
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROWS, FILE_BYTES = 1_000, 128 << 20
FILES_OF_A_COMMIT = 20_000


def build_delta(directory: Path, files: list[dict[str, Any]]) -> None:
    from deltalake import DeltaTable

    log = directory / "_delta_log"
    log.mkdir(parents=True)
    columns = (("day", "date", False), ("id", "long", False), ("price", "double", True), ("name", "string", True))
    fields = [{"name": name, "type": kind, "nullable": nullable, "metadata": {}} for name, kind, nullable in columns]
    first = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": "00000000-0000-4000-8000-000000000000",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": fields}),
                "partitionColumns": ["day"],
                "configuration": {},
                "createdTime": 0,
            }
        },
    ]
    for version, start in enumerate(range(0, len(files), FILES_OF_A_COMMIT)):
        actions = [_add_action(file) for file in files[start : start + FILES_OF_A_COMMIT]]
        lines = [json.dumps(action) for action in (*(first if version == 0 else ()), *actions)]
        (log / f"{version:020}.json").write_text("\n".join(lines) + "\n")
    DeltaTable(str(directory)).create_checkpoint()


def _add_action(file: dict[str, Any]) -> dict[str, Any]:
    bounds = {"id": (file["low"], file["high"]), "price": (0.25, 1.5), "name": ("a1", "zzzz")}
    stats = {
        "numRecords": ROWS,
        "minValues": {name: low for name, (low, _) in bounds.items()},
        "maxValues": {name: high for name, (_, high) in bounds.items()},
        "nullCount": dict.fromkeys(bounds, 0),
    }
    return {
        "add": {
            "path": f"day={file['day']}/{file['name']}",
            "partitionValues": {"day": file["day"]},
            "size": FILE_BYTES,
            "modificationTime": 0,
            "dataChange": True,
            "stats": json.dumps(stats),
        }
    }


def plan_delta(directory: Path, question: str) -> Callable[[], int]:
    import pyarrow as pa
    import pyarrow.compute as pc
    from deltalake import DeltaTable

    name, _, value = question.partition("=")

    def plan() -> int:
        table = DeltaTable(str(directory))
        if name == "day":
            return len(table.file_uris([("day", "=", value)]))
        if name == "all":
            return len(table.file_uris())
        # The actions with their bounds as columns: what readers of it prune by.
        actions = pa.table(table.get_add_actions(flatten=True))
        below = pc.less_equal(actions["min.id"], int(value))
        return int(pc.sum(pc.and_(below, pc.greater_equal(actions["max.id"], int(value)))).as_py())

    return plan


def _iceberg_catalog(directory: Path) -> Any:
    from pyiceberg.catalog.sql import SqlCatalog

    directory.mkdir(parents=True, exist_ok=True)
    return SqlCatalog("bench", uri=f"sqlite:///{directory}/catalog.db", warehouse=f"file://{directory}")


def build_iceberg(directory: Path, files: list[dict[str, Any]]) -> None:
    from datetime import date

    from pyiceberg.conversions import to_bytes
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.transforms import IdentityTransform
    from pyiceberg.typedef import Record
    from pyiceberg.types import DateType, DoubleType, LongType, NestedField, StringType

    types = {1: DateType(), 2: LongType(), 3: DoubleType(), 4: StringType()}
    names = {1: "day", 2: "id", 3: "price", 4: "name"}
    schema = Schema(*(NestedField(number, names[number], types[number], required=number < 3) for number in types))
    spec = PartitionSpec(PartitionField(source_id=1, field_id=1000, transform=IdentityTransform(), name="day"))
    catalog = _iceberg_catalog(directory)
    catalog.create_namespace("default")
    table = catalog.create_table("default.files", schema, partition_spec=spec)
    for start in range(0, len(files), FILES_OF_A_COMMIT):
        with table.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
            for file in files[start : start + FILES_OF_A_COMMIT]:
                day = (date.fromisoformat(file["day"]) - date(1970, 1, 1)).days
                lows = {1: day, 2: file["low"], 3: 0.25, 4: "a1"}
                highs = {1: day, 2: file["high"], 3: 1.5, 4: "zzzz"}
                data_file = DataFile.from_args(
                    content=DataFileContent.DATA,
                    file_path=f"file://{directory}/data/day={file['day']}/{file['name']}",
                    file_format=FileFormat.PARQUET,
                    partition=Record(day),
                    record_count=ROWS,
                    file_size_in_bytes=FILE_BYTES,
                    value_counts=dict.fromkeys(types, ROWS),
                    null_value_counts=dict.fromkeys(types, 0),
                    lower_bounds={number: to_bytes(types[number], value) for number, value in lows.items()},
                    upper_bounds={number: to_bytes(types[number], value) for number, value in highs.items()},
                )
                data_file.spec_id = table.spec().spec_id
                append.append_data_file(data_file)


def plan_iceberg(directory: Path, question: str) -> Callable[[], int]:
    name, _, value = question.partition("=")
    condition = {"day": f"day = '{value}'", "id": f"id = {value}", "all": None}[name]

    def plan() -> int:
        table = _iceberg_catalog(directory).load_table("default.files")
        scan = table.scan() if condition is None else table.scan(row_filter=condition)
        return sum(1 for _ in scan.plan_files())

    return plan


def main(system: str, command: str, directory: str, argument: str) -> None:
    """Runs one command."""
    if command == "build":
        with open(argument, encoding="utf-8") as lines:
            files = [json.loads(line) for line in lines]
        (build_delta if system == "deltalake" else build_iceberg)(Path(directory), files)
        return
    plan = (plan_delta if system == "deltalake" else plan_iceberg)(Path(directory), argument)
    # Modules are loaded by the first one.
    plan()
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    count = plan()
    print(json.dumps({"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "files": count}))


if __name__ == "__main__":
    main(*sys.argv[1:])
