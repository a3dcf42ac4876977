"""Managed tables for Python and Spark, stored in the Apache Paimon table format.

    import tablestore as ts

    catalog = ts.open_catalog("/data/warehouse")     every table of a warehouse
    table = ts.open_table("/data/warehouse/shop.db/orders")     one table by its path

The names below are the public ones; everything else may move. ``import tablestore`` loads the errors and
nothing heavy: a name brings in its module when it is first used (PEP 562), so that a program that only
catches errors, or a Spark worker that only looks for data sources, starts fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tablestore.errors import (
    AlreadyExistsError,
    CommitOutcomeUnknown,
    ConflictError,
    FormatError,
    InvalidInputError,
    NotFoundError,
    StorageError,
    TablestoreError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from tablestore.cdc.deliver.delivering import DeliveryReport, deliver
    from tablestore.cdc.ingest.ingesting import dead_letter_table, ingest
    from tablestore.cdc.ingest.ingestrequest import IngestCommit, IngestReport
    from tablestore.environment.query import Query
    from tablestore.environment.result import Result
    from tablestore.environment.tableenvironment import TableEnvironment
    from tablestore.format.snapshot import CommitKind, Snapshot
    from tablestore.table.catalog import Catalog
    from tablestore.table.opening import open_catalog, open_table
    from tablestore.table.read.scan import Scan
    from tablestore.table.system.systemtable import SystemTable
    from tablestore.table.table import Table
    from tablestore.table.write.writer import TableWriter
    from tablestore.types.evolution.schemachanges import (
        AddColumn,
        ChangeComment,
        ChangeDefault,
        ChangeNullability,
        ChangeType,
        DropColumn,
        MoveColumn,
        RemoveOption,
        RenameColumn,
        SetOption,
        SetTableComment,
    )
    from tablestore.types.rowkind import RowKind

__version__ = "0.1.0"

# name -> the module that defines it
_LAZY = {
    "AddColumn": "tablestore.types.evolution.schemachanges",
    "Catalog": "tablestore.table.catalog",
    "ChangeComment": "tablestore.types.evolution.schemachanges",
    "ChangeDefault": "tablestore.types.evolution.schemachanges",
    "ChangeNullability": "tablestore.types.evolution.schemachanges",
    "ChangeType": "tablestore.types.evolution.schemachanges",
    "CommitKind": "tablestore.format.snapshot",
    "DeliveryReport": "tablestore.cdc.deliver.delivering",
    "DropColumn": "tablestore.types.evolution.schemachanges",
    "IngestCommit": "tablestore.cdc.ingest.ingestrequest",
    "IngestReport": "tablestore.cdc.ingest.ingestrequest",
    "MoveColumn": "tablestore.types.evolution.schemachanges",
    "Query": "tablestore.environment.query",
    "RemoveOption": "tablestore.types.evolution.schemachanges",
    "RenameColumn": "tablestore.types.evolution.schemachanges",
    "Result": "tablestore.environment.result",
    "RowKind": "tablestore.types.rowkind",
    "Scan": "tablestore.table.read.scan",
    "SetOption": "tablestore.types.evolution.schemachanges",
    "SetTableComment": "tablestore.types.evolution.schemachanges",
    "Snapshot": "tablestore.format.snapshot",
    "SystemTable": "tablestore.table.system.systemtable",
    "Table": "tablestore.table.table",
    "TableEnvironment": "tablestore.environment.tableenvironment",
    "TableWriter": "tablestore.table.write.writer",
    "deliver": "tablestore.cdc.deliver.delivering",
    "dead_letter_table": "tablestore.cdc.ingest.ingesting",
    "ingest": "tablestore.cdc.ingest.ingesting",
    "open_catalog": "tablestore.table.opening",
    "open_table": "tablestore.table.opening",
}

__all__ = [
    "AddColumn",
    "AlreadyExistsError",
    "Catalog",
    "ChangeComment",
    "ChangeDefault",
    "ChangeNullability",
    "ChangeType",
    "CommitKind",
    "CommitOutcomeUnknown",
    "ConflictError",
    "DeliveryReport",
    "DropColumn",
    "FormatError",
    "IngestCommit",
    "IngestReport",
    "InvalidInputError",
    "MoveColumn",
    "NotFoundError",
    "Query",
    "RemoveOption",
    "RenameColumn",
    "Result",
    "RowKind",
    "Scan",
    "SetOption",
    "SetTableComment",
    "Snapshot",
    "StorageError",
    "SystemTable",
    "Table",
    "TableEnvironment",
    "TableWriter",
    "TablestoreError",
    "UnsupportedError",
    "__version__",
    "dead_letter_table",
    "deliver",
    "ingest",
    "open_catalog",
    "open_table",
]


def __getattr__(name: str) -> Any:
    module = _LAZY.get(name)
    if module is None:
        known = ", ".join(__all__)
        raise AttributeError(f"module 'tablestore' has no attribute {name!r}; its public names are {known}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
