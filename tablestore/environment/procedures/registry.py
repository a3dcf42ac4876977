"""Makes the procedures of CALL of the Python API: what a call takes is what the function takes.

    CALL sys.expire_snapshots('shop.orders', retain_max => 20, older_than => '7 d')
    CALL sys.create_tag(table => 'shop.orders', name => 'v1')

The first argument is the table. A function's parameters keep their names, their order and their defaults; where it takes an
engine, ``tasks => TRUE`` gives it the session's. What SQL has no literal for is written as text: an age as ``'7 d'``, a time as
``'2026-01-31 12:00:00'``, partitions as ``'day=2026-01-31,hour=5;day=2026-02-01'``.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from tablestore.cdc.ingest.ingesting import IngestEngine, ingest
from tablestore.table.inspect.check import check_table
from tablestore.table.inspect.findings import TABLE, Finding
from tablestore.table.inspect.repair import Repair, do_repair, plan_repairs
from tablestore.table.table import Table

Function = Callable[..., object]
# The parameter of a call by which a function that takes an engine gets the session's.
TASKS = "tasks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter. ``kinds``: the Python types that it takes, those inside of a union one by one."""

    name: str
    kinds: tuple[type, ...]
    default: object = inspect.Parameter.empty

    @property
    def is_needed(self) -> bool:
        """True if a call has to give it."""
        return self.default is inspect.Parameter.empty


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """A function of a table that CALL can run. ``engine``: its parameter that takes an engine, if it has one."""

    name: str
    function: Function
    parameters: tuple[Parameter, ...]
    sentence: str
    engine: str | None = None


def verify(table: Table, *, deep: bool = False) -> tuple[Finding, ...]:
    """The faults of the table; no row if it is whole. ``deep`` reads every row of every file."""
    findings = check_table(table.context, deep=deep)
    return tuple(replace(one, fix=one.fix.replace(TABLE, table.name)) for one in findings)


def repair(table: Table, *, dry_run: bool = False) -> tuple[Repair, ...]:
    """Put right what a crash has left, as far as nothing can be lost by it. The steps that were done, or would be."""
    steps = plan_repairs(check_table(table.context))
    for step in () if dry_run else steps:
        do_repair(table.context, step)
    return steps


def publish(table: Table) -> object:
    """Send what snapshots have and the change log lacks."""
    return table.change_log.publish()


def rebuild_log(table: Table) -> object:
    """Make the change log anew and begin it with the earliest retained snapshot."""
    return table.change_log.rebuild()


def _procedure(function: Function, name: str) -> Procedure:
    _, *signature_parameters = inspect.signature(function).parameters.values()
    parameters = [
        Parameter(name=one.name, kinds=tuple(_kinds(one.annotation)), default=one.default) for one in signature_parameters
    ]
    engine = next((one.name for one in parameters if IngestEngine in one.kinds), None)
    tasks = [] if engine is None else [Parameter(name=TASKS, kinds=(bool,), default=False)]
    return Procedure(
        name=name,
        function=function,
        # SQL cannot write functions, such as one that shows progress.
        parameters=(*(one for one in parameters if not _WRITTEN.isdisjoint(one.kinds)), *tasks),
        sentence=" ".join((inspect.getdoc(function) or "").split("\n\n")[0].split()),
        engine=engine,
    )


def _kinds(hint: Any) -> Iterable[type]:
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        for one in get_args(hint):
            yield from _kinds(one)
    elif origin is Literal:
        yield from {type(one) for one in get_args(hint)}
    elif isinstance(origin or hint, type):
        yield origin or hint


_FUNCTIONS: Mapping[str, Function] = {
    "expire_snapshots": Table.expire_snapshots,
    "rollback_to": Table.rollback_to,
    "create_tag": Table.create_tag,
    "rename_tag": Table.rename_tag,
    "delete_tag": Table.delete_tag,
    "create_branch": Table.create_branch,
    "delete_branch": Table.delete_branch,
    "fast_forward": Table.fast_forward,
    "reset_consumer": Table.reset_consumer,
    "delete_consumer": Table.delete_consumer,
    "expire_partitions": Table.expire_partitions,
    "remove_orphan_files": Table.remove_orphan_files,
    "compact": Table.compact,
    "compact_manifests": Table.compact_manifests,
    "rescale": Table.rescale,
    "verify": verify,
    "repair": repair,
    "ingest": ingest,
    "publish": publish,
    "rebuild_log": rebuild_log,
}
# The values that a parameter takes, for people.
KIND_WORDS: Mapping[type, str] = {
    bool: "TRUE or FALSE",
    int: "a whole number",
    str: "a text",
    timedelta: "an age such as '7 d'",
    datetime: "a time such as '2026-01-31 12:00:00'",
    Iterable: "partitions such as 'day=2026-01-31'",
    Table: "the name of a table",
    NoneType: "NULL",
}
_WRITTEN = KIND_WORDS.keys() - {NoneType}
PROCEDURES: Mapping[str, Procedure] = {name: _procedure(function, name) for name, function in sorted(_FUNCTIONS.items())}
