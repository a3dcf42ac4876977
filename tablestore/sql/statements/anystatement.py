"""The union of all statements, and EXPLAIN, which holds one of them."""

from dataclasses import dataclass

from tablestore.sql.statements.alter import AlterFunction, AlterTable, AlterView, AnalyzeTable, RestoreTable, TruncateTable
from tablestore.sql.statements.definition import (
    CreateCatalog,
    CreateDatabase,
    CreateFunction,
    CreateTable,
    CreateView,
    Drop,
    DropCatalog,
    DropDatabase,
)
from tablestore.sql.statements.materialized import AlterMaterializedTable, CreateMaterializedTable, DropMaterializedTable
from tablestore.sql.statements.rows import Delete, ExecuteStatementSet, Insert, Merge, Query, Update
from tablestore.sql.statements.session import (
    CallProcedure,
    Describe,
    DescribeFunction,
    DescribeHistory,
    EngineStatement,
    RefreshTable,
    ResetSessionOption,
    SetSessionOption,
    Show,
    UseNames,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explain:
    """``EXPLAIN [mode] statement``; ``mode`` in lower case."""

    statement: "Statement"
    mode: str | None = None


Statement = (
    Query
    | Insert
    | Delete
    | Update
    | Merge
    | ExecuteStatementSet
    | CreateTable
    | CreateView
    | CreateFunction
    | Drop
    | AlterTable
    | AlterView
    | AlterFunction
    | AnalyzeTable
    | RestoreTable
    | TruncateTable
    | CreateMaterializedTable
    | AlterMaterializedTable
    | DropMaterializedTable
    | CreateDatabase
    | DropDatabase
    | CreateCatalog
    | DropCatalog
    | Show
    | Describe
    | DescribeFunction
    | DescribeHistory
    | RefreshTable
    | UseNames
    | SetSessionOption
    | ResetSessionOption
    | CallProcedure
    | Explain
    | EngineStatement
)
