"""Managed tables for Python and Spark, stored in the Apache Paimon table format.

    import tablestore as ts

    catalog = ts.open_catalog("/data/warehouse")     every table of a warehouse
    table = ts.open_table("/data/warehouse/shop.db/orders")     one table by its path

The names below are the public ones; everything else may move. ``import tablestore`` loads the errors and
nothing heavy: a name brings in its module when it is first used (PEP 562), so that a program that only
catches errors, or a Spark worker that only looks for data sources, starts fast.
"""

import os
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
    from tablestore.cdc.deliver.topicsink import Topic
    from tablestore.cdc.ingest.ingesting import dead_letter_table, ingest
    from tablestore.cdc.ingest.ingestrequest import IngestCommit, IngestReport
    from tablestore.environment.query import Query
    from tablestore.environment.restricted.restrictions import Restrictions
    from tablestore.environment.result import Result
    from tablestore.format.snapshot import CommitKind, Snapshot
    from tablestore.format.tagfile import Tag
    from tablestore.format.writecounts import WriteCounts
    from tablestore.log.events import Restarted, SchemaLanded
    from tablestore.log.follow.consumption import ChangeBatch
    from tablestore.log.position import Position
    from tablestore.store.history.branches import Branch
    from tablestore.store.history.consumers import Consumer
    from tablestore.store.history.expire import ExpireReport
    from tablestore.store.history.orphans import CleanReport
    from tablestore.table.catalog import Catalog
    from tablestore.table.change.merge import Merge
    from tablestore.table.creation.deadleases import DeadHold
    from tablestore.table.creation.stagedtable import StagedTable
    from tablestore.table.creation.sweep import SweepReport
    from tablestore.table.history.partitionexpiry import PartitionReport
    from tablestore.table.opening import open_catalog, open_table
    from tablestore.table.read.changes import Changes
    from tablestore.table.read.scan import Scan, ScanSplit
    from tablestore.table.system.systemtable import SystemTable
    from tablestore.table.table import Table
    from tablestore.table.upkeep.compaction import CompactReport
    from tablestore.table.write.inputrows import Rows
    from tablestore.table.write.writer import TableWriter
    from tablestore.tableenvironment import TableEnvironment
    from tablestore.types.evolution.schemachanges import (
        AddCheck,
        AddColumn,
        ChangeComment,
        ChangeDefault,
        ChangeNullability,
        ChangeType,
        DropCheck,
        DropColumn,
        MoveColumn,
        RemoveOption,
        RenameColumn,
        SchemaChange,
        SetOption,
        SetTableComment,
    )
    from tablestore.types.rowkind import RowKind

__version__ = "0.1.0"

# A commit relies on what POSIX says of links, renames and directories that are synced.
if os.name != "posix":
    raise ImportError(
        f"expected a POSIX system, such as Linux or macOS, found {os.name!r}: on Windows install tablestore in WSL"
    )

# The distribution `tablestore` of the Python Package Index is another product, whose package has this name: its files in this
# folder say that it was installed into the same environment. Each overwrites the other, and to remove one breaks the other.
if os.path.isdir(os.path.join(os.path.dirname(__file__), "plainbuffer")):
    raise ImportError(
        "another product, the distribution `tablestore`, is installed in the folder of `managed-tablestore`, and each overwrites "
        "files of the other. Run: pip uninstall --yes tablestore managed-tablestore && pip install managed-tablestore"
    )

# name -> the module that defines it
_LAZY = {
    "AddCheck": "tablestore.types.evolution.schemachanges",
    "AddColumn": "tablestore.types.evolution.schemachanges",
    "Branch": "tablestore.store.history.branches",
    "Catalog": "tablestore.table.catalog",
    "ChangeBatch": "tablestore.log.follow.consumption",
    "ChangeComment": "tablestore.types.evolution.schemachanges",
    "ChangeDefault": "tablestore.types.evolution.schemachanges",
    "ChangeNullability": "tablestore.types.evolution.schemachanges",
    "ChangeType": "tablestore.types.evolution.schemachanges",
    "Changes": "tablestore.table.read.changes",
    "CleanReport": "tablestore.store.history.orphans",
    "CommitKind": "tablestore.format.snapshot",
    "CompactReport": "tablestore.table.upkeep.compaction",
    "Consumer": "tablestore.store.history.consumers",
    "DeadHold": "tablestore.table.creation.deadleases",
    "DeliveryReport": "tablestore.cdc.deliver.delivering",
    "DropCheck": "tablestore.types.evolution.schemachanges",
    "DropColumn": "tablestore.types.evolution.schemachanges",
    "ExpireReport": "tablestore.store.history.expire",
    "IngestCommit": "tablestore.cdc.ingest.ingestrequest",
    "IngestReport": "tablestore.cdc.ingest.ingestrequest",
    "Merge": "tablestore.table.change.merge",
    "MoveColumn": "tablestore.types.evolution.schemachanges",
    "PartitionReport": "tablestore.table.history.partitionexpiry",
    "Position": "tablestore.log.position",
    "Query": "tablestore.environment.query",
    "RemoveOption": "tablestore.types.evolution.schemachanges",
    "RenameColumn": "tablestore.types.evolution.schemachanges",
    "Restarted": "tablestore.log.events",
    "Restrictions": "tablestore.environment.restricted.restrictions",
    "Result": "tablestore.environment.result",
    "RowKind": "tablestore.types.rowkind",
    "Rows": "tablestore.table.write.inputrows",
    "Scan": "tablestore.table.read.scan",
    "ScanSplit": "tablestore.table.read.scan",
    "SchemaChange": "tablestore.types.evolution.schemachanges",
    "SchemaLanded": "tablestore.log.events",
    "SetOption": "tablestore.types.evolution.schemachanges",
    "SetTableComment": "tablestore.types.evolution.schemachanges",
    "Snapshot": "tablestore.format.snapshot",
    "StagedTable": "tablestore.table.creation.stagedtable",
    "SweepReport": "tablestore.table.creation.sweep",
    "SystemTable": "tablestore.table.system.systemtable",
    "Table": "tablestore.table.table",
    "TableEnvironment": "tablestore.tableenvironment",
    "TableWriter": "tablestore.table.write.writer",
    "Tag": "tablestore.format.tagfile",
    "Topic": "tablestore.cdc.deliver.topicsink",
    "WriteCounts": "tablestore.format.writecounts",
    "dead_letter_table": "tablestore.cdc.ingest.ingesting",
    "deliver": "tablestore.cdc.deliver.delivering",
    "ingest": "tablestore.cdc.ingest.ingesting",
    "open_catalog": "tablestore.table.opening",
    "open_table": "tablestore.table.opening",
}

__all__ = [
    "AddCheck",
    "AddColumn",
    "AlreadyExistsError",
    "Branch",
    "Catalog",
    "ChangeBatch",
    "ChangeComment",
    "ChangeDefault",
    "ChangeNullability",
    "ChangeType",
    "Changes",
    "CleanReport",
    "CommitKind",
    "CommitOutcomeUnknown",
    "CompactReport",
    "ConflictError",
    "Consumer",
    "DeadHold",
    "DeliveryReport",
    "DropCheck",
    "DropColumn",
    "ExpireReport",
    "FormatError",
    "IngestCommit",
    "IngestReport",
    "InvalidInputError",
    "Merge",
    "MoveColumn",
    "NotFoundError",
    "PartitionReport",
    "Position",
    "Query",
    "RemoveOption",
    "RenameColumn",
    "Restarted",
    "Restrictions",
    "Result",
    "RowKind",
    "Rows",
    "Scan",
    "ScanSplit",
    "SchemaChange",
    "SchemaLanded",
    "SetOption",
    "SetTableComment",
    "Snapshot",
    "StagedTable",
    "StorageError",
    "SweepReport",
    "SystemTable",
    "Table",
    "TableEnvironment",
    "TableWriter",
    "TablestoreError",
    "Tag",
    "Topic",
    "UnsupportedError",
    "WriteCounts",
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
        # Needed by who is wrong alone.
        othernames = import_module("tablestore.othernames")
        if (way := othernames.MODULE.get(name)) is not None:
            raise othernames.OtherName(f"module 'tablestore' has no attribute {name!r}; here it is {way}")
        public_names = ", ".join(__all__)
        raise AttributeError(f"module 'tablestore' has no attribute {name!r}; its public names are {public_names}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
