"""Statements that create and drop tables, views, functions, databases and catalogs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tablestore.sql.source import NOWHERE, Fragment, Path, Span
from tablestore.types.datatypes import DataType


@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicalColumn:
    """A stored column. ``type`` holds its nullability; ``default`` is the text of a literal."""

    name: str
    type: DataType
    comment: str | None = None
    default: str | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedColumn:
    """``name AS expression``: computed when the table is read."""

    name: str
    expression: Fragment
    comment: str | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataColumn:
    """``name type METADATA [FROM 'key'] [VIRTUAL]``: what the connector knows of a row."""

    name: str
    type: DataType
    key: str | None = None
    virtual: bool = False
    comment: str | None = None
    span: Span = field(default=NOWHERE, compare=False)


Column = PhysicalColumn | ComputedColumn | MetadataColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """``[CONSTRAINT name] CHECK (condition)``; without a name it gets one, by the ``column`` behind which it stands."""

    condition: Fragment
    name: str | None = None
    column: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Watermark:
    """``WATERMARK FOR column AS expression``."""

    column: str
    expression: Fragment


@dataclass(frozen=True, slots=True, kw_only=True)
class LikeClause:
    """``LIKE source [(INCLUDING|EXCLUDING|OVERWRITING what, …)]``: ``choices`` of what (``options``, ``partitions``, …)."""

    source: Path
    choices: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable:
    """``CREATE [OR REPLACE] [TEMPORARY] TABLE [IF NOT EXISTS] path …``; ``REPLACE TABLE`` is ``replace`` with ``must_exist``.

    ``columns`` is None where none are written (LIKE, AS). ``names`` are columns without types: they put those of the query in
    order. ``constraint`` is the name of the primary key, ``provider`` what follows ``USING``.
    """

    path: Path
    columns: tuple[Column, ...] | None = None
    names: tuple[str, ...] = ()
    primary_key: tuple[str, ...] = ()
    constraint: str | None = None
    checks: tuple[Check, ...] = ()
    watermark: Watermark | None = None
    partitioned_by: tuple[str, ...] = ()
    comment: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    provider: str | None = None
    like: LikeClause | None = None
    query: Fragment | None = None
    temporary: bool = False
    if_not_exists: bool = False
    replace: bool = False
    must_exist: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateView:
    """``CREATE [OR REPLACE] [TEMPORARY] VIEW [IF NOT EXISTS] path [(columns)] [COMMENT] [TBLPROPERTIES (…)] AS query``."""

    path: Path
    query: Fragment
    columns: tuple[str, ...] = ()
    comment: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    temporary: bool = False
    if_not_exists: bool = False
    replace: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateFunction:
    """``CREATE [OR REPLACE] [TEMPORARY [SYSTEM]] FUNCTION [IF NOT EXISTS] path AS 'class_name' [LANGUAGE language]``, or permanent
    ``… path (parameters) RETURNS type [COMMENT] RETURN body``: then ``class_name`` is None."""

    path: Path
    class_name: str | None = None
    language: str | None = None
    parameters: tuple[tuple[str, DataType], ...] = ()
    returns: DataType | None = None
    body: Fragment | None = None
    comment: str | None = None
    temporary: bool = False
    system: bool = False
    if_not_exists: bool = False
    replace: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """``DROP [TEMPORARY [SYSTEM]] TABLE|VIEW|FUNCTION [IF EXISTS] path``; ``what`` in lower case."""

    what: str
    path: Path
    temporary: bool = False
    system: bool = False
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateDatabase:
    """``CREATE DATABASE|SCHEMA [IF NOT EXISTS] path [COMMENT] [WITH (…)]``."""

    path: Path
    if_not_exists: bool = False
    comment: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DropDatabase:
    """``DROP DATABASE|SCHEMA [IF EXISTS] path [RESTRICT|CASCADE]``."""

    path: Path
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateCatalog:
    """``CREATE CATALOG [IF NOT EXISTS] name [COMMENT] [WITH (…)]``."""

    name: str
    options: Mapping[str, str] = field(default_factory=dict)
    if_not_exists: bool = False
    comment: str | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DropCatalog:
    """``DROP CATALOG [IF EXISTS] name``: the environment forgets it; what it holds stays."""

    name: str
    if_exists: bool = False
    span: Span = field(default=NOWHERE, compare=False)
