"""Runs CALL: a procedure with the arguments of a statement, and shows what it did."""

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from types import NoneType
from typing import Any

import pyarrow as pa

from tablestore.environment.definition.partitions import partition_of
from tablestore.environment.engine import ingest_engine
from tablestore.environment.procedures.registry import KIND_WORDS, PROCEDURES, TASKS, Parameter, Procedure
from tablestore.environment.result import Result, done, landed, listed
from tablestore.environment.session.session import Session, placing
from tablestore.environment.source import Source
from tablestore.errors import InvalidInputError, NotFoundError
from tablestore.format.snapshot import Snapshot
from tablestore.names import did_you_mean
from tablestore.options import parse_duration
from tablestore.sql.parse.statement import parse_path
from tablestore.sql.source import Path
from tablestore.sql.statements.session import Argument, CallProcedure
from tablestore.table.table import Table

# Procedures lie in this database of every catalog, as Paimon's do.
SYSTEM = "sys"


def call(session: Session, statement: CallProcedure, source: Source) -> Result:
    """Runs a procedure. Raises NotFoundError for an unknown one, InvalidInputError for wrong arguments, and what it raises."""
    procedure = _find(session, statement, source)
    table_argument = Parameter(name="table", kinds=(str,))
    arguments_by_name = _matched_arguments(procedure, (table_argument, *procedure.parameters), statement, source)
    named = arguments_by_name.pop("table")
    if not isinstance(named.value, str):
        raise _wrong(procedure, table_argument, named, source)
    place = (statement.procedure.parts[0], session.catalogs.current_database) if len(statement.procedure.parts) == 3 else None
    with placing(source, named.span):
        path = parse_path(named.value)
        table = session.table(Path(path.parts), f"CALL {procedure.name}", place=place)
    arguments: dict[str, object] = {
        parameter.name: _value(procedure, parameter, arguments_by_name[parameter.name], table, source)
        for parameter in procedure.parameters
        if parameter.name in arguments_by_name
    }
    for parameter in procedure.parameters:
        if Table in parameter.kinds and isinstance(other := arguments.get(parameter.name), str):
            with placing(source, arguments_by_name[parameter.name].span):
                arguments[parameter.name] = session.table(Path(parse_path(other).parts), f"CALL {procedure.name}", place=place)
    if procedure.engine is not None and arguments.pop(TASKS, False):
        storage = session.spec(session.expand(Path(path.parts), place=place), table).storage_options
        arguments[procedure.engine] = ingest_engine(session.engine_for(f"CALL {procedure.name} with {TASKS}"), storage)
    return shown(procedure.function(table, **arguments))


def _find(session: Session, statement: CallProcedure, source: Source) -> Procedure:
    *above, name = statement.procedure.parts
    with placing(source, statement.procedure.span):
        if len(above) == 2:
            session.catalogs.entry(above[0])
        if (above and above[-1].lower() != SYSTEM) or name.lower() not in PROCEDURES:
            raise NotFoundError(
                f"no procedure {str(statement.procedure)!r:.120}{did_you_mean(name, PROCEDURES)} (there: "
                f"{', '.join(f'{SYSTEM}.{one}' for one in PROCEDURES)})",
                kind="no-such-procedure",
            )
    return PROCEDURES[name.lower()]


def _matched_arguments(
    procedure: Procedure, parameters: tuple[Parameter, ...], statement: CallProcedure, source: Source
) -> dict[str, Argument]:
    names = [parameter.name for parameter in parameters]
    arguments_by_name: dict[str, Argument] = {}
    for place, argument in enumerate(statement.arguments):
        if argument.name is None and place >= len(names):
            raise _misfit(procedure, f"takes at most {len(names)} arguments ({', '.join(names)})", argument, source)
        name = names[place] if argument.name is None else argument.name.lower()
        if name not in names:
            raise _misfit(
                procedure, f"has no parameter {name!r}{did_you_mean(name, names)} (it has {', '.join(names)})", argument, source
            )
        if name in arguments_by_name:
            raise _misfit(procedure, f"got {name!r} twice", argument, source)
        arguments_by_name[name] = argument
    missing = [parameter.name for parameter in parameters if parameter.is_needed and parameter.name not in arguments_by_name]
    if missing:
        raise InvalidInputError(
            source.mark(f"CALL {procedure.name} needs {', '.join(missing)}", statement.procedure.span), kind="invalid-argument"
        )
    return arguments_by_name


def _value(procedure: Procedure, parameter: Parameter, argument: Argument, table: Table, source: Source) -> object:
    """The Python value of an argument. Raises InvalidInputError for one that the parameter does not take."""
    value, kinds = argument.value, parameter.kinds
    if value is None and (NoneType in kinds or not parameter.is_needed):
        return parameter.default if NoneType not in kinds else None
    if isinstance(value, bool):
        if bool in kinds:
            return value
    elif isinstance(value, int):
        if int in kinds:
            return value
    elif isinstance(value, str):
        with placing(source, argument.span):
            if (read := _from_text(value, kinds, table)) is not None:
                return read
    raise _wrong(procedure, parameter, argument, source)


def _from_text(text: str, kinds: tuple[type, ...], table: Table) -> object:
    if str in kinds or Table in kinds:
        return text
    if datetime in kinds:
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            pass
    if timedelta in kinds:
        return timedelta(milliseconds=parse_duration(text))
    if bool in kinds and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if Iterable in kinds:
        return [_partition(one, table) for one in text.split(";")]
    return None


def _partition(text: str, table: Table) -> dict[str, object]:
    pairs = [pair.partition("=") for pair in text.split(",")]
    if not all(equals for _, equals, _ in pairs):
        raise InvalidInputError(f"expected partitions such as 'day=2026-01-31,hour=5;day=2026-02-01', found {text!r:.100}")
    return partition_of(table, {name.strip(): value.strip() for name, _, value in pairs}, Source())


def _wrong(procedure: Procedure, parameter: Parameter, argument: Argument, source: Source) -> InvalidInputError:
    kinds = " or ".join(KIND_WORDS[kind] for kind in parameter.kinds if kind in KIND_WORDS)
    return _misfit(procedure, f"expected {kinds} as {parameter.name}, found {argument.value!r:.100}", argument, source)


def _misfit(procedure: Procedure, message: str, argument: Argument, source: Source) -> InvalidInputError:
    return InvalidInputError(source.mark(f"CALL {procedure.name}: {message}", argument.span), kind="invalid-argument")


def shown(value: object) -> Result:
    """The value that a procedure returned, as a result: a report as one row, a list of them as rows."""
    match value:
        case None | Table():
            return done()
        case Snapshot():
            return landed(value)
        case bool():
            return Result(pa.table({"result": pa.array([value])}))
        case tuple() if not value:
            return listed("result", [])
        case tuple():
            return Result(pa.Table.from_pylist([_row(one) for one in value]))
        case _ if is_dataclass(value):
            return Result(pa.Table.from_pylist([_row(value)]))
    return listed("result", [str(value)])


def _row(report: Any) -> dict[str, object]:
    return {one.name: _cell(getattr(report, one.name)) for one in fields(report)}


def _cell(value: object) -> object:
    match value:
        case None | bool() | int() | str():
            return value
        case Snapshot():
            return value.id
        case tuple():
            return ", ".join(str(_cell(one)) for one in value)
        case _ if is_dataclass(value) and hasattr(value, "path"):
            return value.path
    return str(value)
