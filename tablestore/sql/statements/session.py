"""Statements that list objects, set the session and call procedures."""

from dataclasses import dataclass, field
from enum import Enum

from tablestore.sql.source import NOWHERE, Fragment, Path, Span
from tablestore.sql.statements.alter import PartitionSpec


class ShowKind(Enum):
    """The kinds of objects that SHOW lists."""

    CATALOGS = "CATALOGS"
    DATABASES = "DATABASES"
    TABLES = "TABLES"
    VIEWS = "VIEWS"
    FUNCTIONS = "FUNCTIONS"
    COLUMNS = "COLUMNS"
    PARTITIONS = "PARTITIONS"
    SNAPSHOTS = "SNAPSHOTS"
    TAGS = "TAGS"
    BRANCHES = "BRANCHES"
    OPTIONS = "OPTIONS"
    PROCEDURES = "PROCEDURES"
    JOBS = "JOBS"
    MATERIALIZED_TABLES = "MATERIALIZED TABLES"
    CREATE_TABLE = "CREATE TABLE"
    CREATE_MATERIALIZED_TABLE = "CREATE MATERIALIZED TABLE"
    CREATE_VIEW = "CREATE VIEW"
    CREATE_CATALOG = "CREATE CATALOG"
    CURRENT_CATALOG = "CURRENT CATALOG"
    CURRENT_DATABASE = "CURRENT DATABASE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Show:
    """``SHOW [TEMPORARY] kind [FROM|IN path] [[NOT] LIKE|ILIKE 'pattern'] [PARTITION spec] [WHERE condition]``.

    ``path`` names the catalog, database or table that is meant; ``OPTIONS`` (``SHOW TBLPROPERTIES t``, ``SET``) without a path
    are those of the session; ``key`` is the one that is asked for. ``system``: functions that are neither the session's nor a
    catalog's, ``user``: those that are; ``text``: the
    statement itself, for an engine that runs it.
    """

    kind: ShowKind
    path: Path | None = None
    like: str | None = None
    like_ignores_case: bool = False
    not_like: bool = False
    key: str | None = None
    partition: PartitionSpec | None = None
    where: Fragment | None = None
    temporary: bool = False
    system: bool = False
    user: bool = False
    text: Fragment | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Describe:
    """``DESCRIBE|DESC [TABLE|DATABASE|CATALOG] [EXTENDED|FORMATTED] path [PARTITION spec]``; ``what`` in lower case."""

    path: Path
    what: str = "table"
    extended: bool = False
    partition: PartitionSpec | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeFunction:
    """``DESCRIBE|DESC FUNCTION [EXTENDED] path``; ``text``: the statement itself, for a function of the engine's."""

    path: Path
    text: Fragment
    extended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeHistory:
    """``DESCRIBE|DESC HISTORY path [LIMIT n]``."""

    path: Path
    limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshTable:
    """``REFRESH TABLE path``; ``text``: the statement itself, for an engine whose own table that is."""

    path: Path
    text: Fragment


@dataclass(frozen=True, slots=True, kw_only=True)
class UseNames:
    """``USE [catalog.]database``, ``USE DATABASE|SCHEMA path``, ``USE CATALOG name``.

    ``what``: ``catalog``, ``database`` or ``any``.
    """

    what: str
    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class SetSessionOption:
    """``SET 'key' = 'value'``, ``SET key = value``, ``SET key``."""

    key: str
    value: str | None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetSessionOption:
    """``RESET ['key']``; None: all."""

    key: str | None = None
    span: Span = field(default=NOWHERE, compare=False)


# A literal: text, whole number, exact or other number as text is given as Python's; an array as a tuple, a map as pairs.
Literal = str | int | float | bool | None | tuple["Literal", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument of CALL: by position (``name`` None), or ``name => value``."""

    value: Literal
    name: str | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallProcedure:
    """``CALL [catalog.][sys.]procedure(…)``."""

    procedure: Path
    arguments: tuple[Argument, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineStatement:
    """A statement that is none of ours, for the engine as it is (``CACHE TABLE``, ``CREATE TEMPORARY VIEW … USING``)."""

    text: Fragment
