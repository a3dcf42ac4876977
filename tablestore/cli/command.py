"""Gives every command its warehouse, its output and its way to fail.

    command(app, "list", "tablestore table list shop")      turns a function into a command

A command is a function whose first argument is a :class:`CommandRun`. The decorator adds the options that all commands have, the
examples in the help, and the one place where errors become an exit code:

    0    done
    1    it failed: one of our errors, shown as one message (``--debug`` shows the trace)
    2    the command line is wrong
    3    refused, waits for ``--yes``, or a check has found something
    130  interrupted; what had been committed by then is said, if the command did not say it as it went
    141  the reader of standard output has left; without a word
"""

import inspect
import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import wraps
from traceback import format_exc
from typing import TYPE_CHECKING, Annotated, Any

import typer

import tablestore as ts
from tablestore.catalog.settings import OPTIONS as CATALOG_OPTIONS
from tablestore.catalog.settings import TABLE_DEFAULT
from tablestore.cli.interruption import INTERRUPTED, RememberedIds, raise_at_ctrl_c, unknown, what_landed
from tablestore.cli.text.render import Output, silence_stdout
from tablestore.cli.text.safetext import safe
from tablestore.clock import Clock, SystemClock
from tablestore.io.lock.lockoptions import PREFIX as LOCK_PREFIX
from tablestore.redaction import is_reference, is_telling, without_secrets

if TYPE_CHECKING:
    from tablestore.catalog.metacatalog import MetaCatalog
    from tablestore.cli.tableparts import TableParts
    from tablestore.types.schema import TableSchema

FAILED, USAGE, REFUSED = 1, 2, 3
READER_LEFT = 141
WAREHOUSE_VARIABLE = "TABLESTORE_WAREHOUSE"
DEBUG_VARIABLE = "TABLESTORE_DEBUG"
_PANEL = "Everywhere"

Warehouse = Annotated[
    str | None,
    typer.Option(
        "--warehouse",
        "-w",
        envvar=WAREHOUSE_VARIABLE,
        show_envvar=True,
        help="Where the tables lie: a folder, s3://bucket/path, or any URL that fsspec knows.",
        rich_help_panel=_PANEL,
    ),
]
Storage = Annotated[
    list[str] | None,
    typer.Option(
        "--storage",
        metavar="KEY=VALUE",
        help="Option of the storage client, such as endpoint_url=http://localhost:9000 or anon=true, or of the catalog, such as "
        "metastore=jdbc. May be repeated. A secret is named: secret=env:NAME, secret=file:PATH.",
        rich_help_panel=_PANEL,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable output.", rich_help_panel=_PANEL)]
Debug = Annotated[
    bool,
    typer.Option("--debug", envvar=DEBUG_VARIABLE, help="Show the trace of an error.", rich_help_panel=_PANEL),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it; without this the plan is shown and nothing happens.")]


class Refused(Exception):
    """The command refuses: exit code 3. The message says what to do."""


class FoundProblems(Exception):
    """A check has found something, and has shown it: exit code 3."""


@dataclass(kw_only=True)
class CommandRun:
    """One run of one command."""

    out: Output
    clock: Clock = field(default_factory=SystemClock)
    begun_s: float = 0.0
    warehouse: str | None = None
    storage: Mapping[str, Any] = field(default_factory=dict)
    ids: RememberedIds = field(default_factory=RememberedIds)
    opened: "dict[str, ts.Table]" = field(default_factory=dict)
    # It says what it has done as it goes: Ctrl-C is how it ends, without a word.
    says_itself: bool = False

    @property
    def seconds(self) -> float:
        """The time since the command began, to the millisecond."""
        return round(self.clock.steady_s() - self.begun_s, 3)

    def took(self, seconds: float | None = None) -> str:
        """``, 0.41 s`` on a terminal: how long the command, or a part of it, took. Empty elsewhere, where outputs are compared."""
        return f", {seconds if seconds is not None else self.seconds:.2f} s" if self.out.is_terminal else ""

    def catalog(self) -> "ts.Catalog":
        """The warehouse's catalog."""
        if not self.warehouse:
            raise typer.BadParameter(
                f"no warehouse is named: pass --warehouse, or set {WAREHOUSE_VARIABLE}", param_hint="'--warehouse'"
            )
        # Not for help and completion.
        from tablestore.cli.watchedcatalog import open_watched

        return open_watched(self.warehouse, self.storage, self.ids, self._watch)

    def table(self, name: str) -> "ts.Table":
        """A table by ``database.table`` or by path; ``$branch_b`` behind it is a branch. A system table is refused."""
        table = self.source(name)
        if isinstance(table, ts.SystemTable):
            raise ts.InvalidInputError(
                f"{name} is a system table, which can only be read: tablestore table show '{name}'", kind="system-table"
            )
        self._watch(table)
        return table

    def source(self, name: str) -> "ts.Table | ts.SystemTable":
        """As :meth:`table`, or one of its system tables: what can be read."""
        if is_path(name):
            return ts.open_table(name, ids=self.ids, **self.storage)
        return self.catalog().table(name)

    def names(self) -> "MetaCatalog":
        """The names in the warehouse, without what opens tables."""
        from tablestore.cli.tableparts import open_names

        return open_names(self.warehouse, self.storage, self.ids)

    def parts(self, name: str) -> "TableParts":
        """The parts of a table by name alone, without opening it."""
        from tablestore.cli.tableparts import find_parts

        return find_parts(name, self.warehouse, self.storage, self.ids, is_path=is_path(name))

    def what_landed(self, uuids: Collection[str]) -> str:
        """The commits under these uuids to the tables that were opened; it raises nothing."""
        try:
            return what_landed(self.opened.values(), uuids)
        except ts.TablestoreError as error:
            return unknown(error)

    def _watch(self, table: "ts.Table") -> None:
        self.opened[table.location] = table

    def confirm(self, yes: bool, sentence: str, plan: Mapping[str, Any]) -> None:
        """Go on if ``--yes`` was given; else show the plan and stop with exit code 3."""
        if yes:
            return
        if self.out.as_json:
            self.out.document({"done": False, "needs": "--yes", "plan": dict(plan)})
        else:
            self.out.say(sentence)
        raise Refused("nothing was changed; pass --yes to do it")

    def watch(
        self,
        tables: Sequence["ts.Table"],
        look: Callable[["ts.Table"], None],
        clock: Clock,
        wait_s: float,
        *,
        looks: int | None = None,
    ) -> None:
        """Look at each table, wait, look again; without end, or ``looks`` times.

        An error (a store that does not answer, a table that is being dropped) is noted, and the next look tries again.
        """
        looks_done, self.says_itself = 0, True
        while looks is None or looks_done < looks:
            for table in tables:
                try:
                    look(table)
                except ts.TablestoreError as error:
                    self.out.note(f"{table.name}: {error}")
            looks_done += 1
            if looks is None or looks_done < looks:
                clock.sleep(wait_s)

    def say_found(self, table: "ts.Table", report: Any) -> None:
        """One line, or one JSON document on a line, about what one look has done."""
        if self.out.as_json:
            self.out.line({"table": table.name, **asdict(report)})
        else:
            self.out.say(f"{table.name}, {report}")
        self.out.flush()


def completing(find: "Callable[[CommandRun, Mapping[str, Any], str], Iterable[str]]") -> Callable[[typer.Context, str], list[str]]:
    """Completes a word by what ``find`` knows of the words before it. Completion shows no errors."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        # Behind an option whose value is being completed, arguments are not yet taken apart.
        arguments = (param.name for param in ctx.command.params if param.param_type_name == "argument")
        words = {**dict(zip(arguments, ctx.args, strict=False)), **{key: value for key, value in ctx.params.items() if value}}
        try:
            session = CommandRun(
                out=Output(as_json=False, now_millis=0),
                warehouse=words.get("warehouse") or os.environ.get(WAREHOUSE_VARIABLE),
                storage=parse_storage(words.get("storage") or ()),
            )
            return list(find(session, words, incomplete))
        except (ts.TablestoreError, OSError, typer.BadParameter):
            return []

    return complete


@completing
def complete_table(session: CommandRun, words: Mapping[str, Any], incomplete: str) -> Iterable[str]:
    """Names of tables, and behind a name and ``$`` those of its branches."""
    base, sign, _ = incomplete.rpartition("$")
    if sign:
        return [f"{base}$branch_{branch}" for branch in session.parts(base).branches()]
    if is_path(incomplete) or not session.warehouse:
        return []
    names = session.names()
    database, dot, _ = incomplete.partition(".")
    databases = (database,) if dot else names.list_databases()
    return [f"{database_name}.{name}" for database_name in databases for name in names.list_tables(database_name)]


TableName = Annotated[
    str,
    typer.Argument(metavar="TABLE", help="database.table of the warehouse, or the path of a table.", autocompletion=complete_table),
]


def is_path(name: str) -> bool:
    """True if a table is named by where it lies. ``db.table`` is never a path: write ``./db.table`` for a folder of that name."""
    return "/" in name or os.sep in name or name in (".", "..") or name.startswith("~")


def command(app: typer.Typer, name: str, *examples: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function as the command ``name``; its docstring is the help, ``examples`` stand below it."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        parameters = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        keyword = inspect.Parameter.KEYWORD_ONLY
        shared = [
            inspect.Parameter("warehouse", keyword, default=None, annotation=Warehouse),
            inspect.Parameter("storage", keyword, default=None, annotation=Storage),
            inspect.Parameter("json_output", keyword, default=False, annotation=Json),
            inspect.Parameter("debug", keyword, default=False, annotation=Debug),
        ]

        @wraps(function)
        def run(
            *args: Any, warehouse: str | None, storage: list[str] | None, json_output: bool, debug: bool, **arguments: Any
        ) -> None:
            clock = SystemClock()
            output = Output(as_json=json_output, now_millis=clock.now_ms())
            session = CommandRun(
                out=output,
                clock=clock,
                begun_s=clock.steady_s(),
                warehouse=warehouse,
                storage=parse_storage(storage or ()),
            )
            for key in _given_openly(storage or ()):
                output.note(
                    f"other users of this machine see --storage {key}=… in its list of processes: give its name, {key}=env:NAME or "
                    f"{key}=file:PATH"
                )
            _guarded(lambda: function(session, *args, **arguments), session, debug)

        run.__signature__ = inspect.Signature([*parameters, *shared])  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in [*parameters, *shared]}
        epilog = "\n\n".join(["[bold]Examples[/bold]" if len(examples) > 1 else "[bold]Example[/bold]", *map(_markup, examples)])
        app.command(name, epilog=epilog)(run)
        return function

    return register


def parse_pairs(pairs: Sequence[str], option: str) -> dict[str, str]:
    """``key=value`` texts as a dict. A text without ``=`` is a usage error."""
    values: dict[str, str] = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator or not key.strip():
            raise typer.BadParameter(f"expected key=value, found {safe(pair)!r}", param_hint=f"'{option}'")
        if key.strip() in values:
            raise typer.BadParameter(f"{safe(key.strip())!r} is given twice; give it once", param_hint=f"'{option}'")
        values[key.strip()] = value
    return values


def _given_openly(storage: Sequence[str]) -> list[str]:
    """Names the options whose values are secrets instead of names of secrets."""
    options = parse_pairs(storage, "--storage")
    return [key for key, value in options.items() if value and is_telling(key) and not is_reference(value)]


def parse_partition(schema: "TableSchema", text: str) -> dict[str, object]:
    """``day=2026-01-31,region=eu`` as values of partition columns."""
    from tablestore.types.partitionspec import parse_partition_value

    if "=" not in text:
        column = schema.partition_keys[0] if schema.partition_keys else "day"
        raise typer.BadParameter(f"expected COLUMN=VALUE, such as {column}={safe(text)}, found {safe(text)!r}")
    pairs = parse_pairs(text.split(","), "--partition")
    return {name: parse_partition_value(schema, name, value) for name, value in pairs.items()}


def parse_storage(pairs: Sequence[str]) -> dict[str, Any]:
    """Options of the storage client: a dot leads inside (``client_kwargs.region_name=eu-west-1``), true and false are booleans."""
    storage: dict[str, Any] = {}
    for key, value in parse_pairs(pairs, "--storage").items():
        # The options of the catalog and of the lock have dots of their own.
        *path, last = [key] if key in CATALOG_OPTIONS or key.startswith((LOCK_PREFIX, TABLE_DEFAULT)) else key.split(".")
        inside = storage
        for part in path:
            inside = inside.setdefault(part, {})
            if not isinstance(inside, dict):
                raise typer.BadParameter(f"{safe(part)!r} is given as a value and as a group", param_hint="'--storage'")
        inside[last] = {"true": True, "false": False}.get(value.lower(), value)
    return storage


def _guarded(work: Callable[[], None], session: CommandRun, debug: bool) -> None:
    output = session.out
    raise_at_ctrl_c(session.ids)
    try:
        work()
        output.flush()
    except BrokenPipeError:
        silence_stdout()
        raise typer.Exit(READER_LEFT) from None
    except FoundProblems:
        raise typer.Exit(REFUSED) from None
    except Refused as refusal:
        if output.as_json:
            output.error_line({"error": {"type": "Refused", "kind": "refused", "message": str(refusal)}})
        else:
            output.refuse(refusal)
        raise typer.Exit(REFUSED) from None
    except KeyboardInterrupt:
        if not session.says_itself:
            _say_interrupted(session)
        raise typer.Exit(INTERRUPTED) from None
    except Exception as error:
        if not _is_said(error):
            raise
        if debug:
            # The causes are errors of other libraries, which may hold the address that they were given, with its password.
            output.errors.print(without_secrets(format_exc()), markup=False, highlight=False, soft_wrap=True)
        elif output.as_json:
            kind = error.kind if isinstance(error, ts.TablestoreError) else "file"
            output.error_line({"error": {"type": type(error).__name__, "kind": kind, "message": _message(error)}})
        else:
            output.fail(_message(error))
        raise typer.Exit(FAILED) from None


def _is_said(error: Exception) -> bool:
    """True if an error is shown as one message: ours, and those of a file that the user named. Any other is our mistake."""
    if isinstance(error, ts.TablestoreError | OSError):
        return True
    # A command that has not loaded pyarrow cannot have an error of it.
    arrow = sys.modules.get("pyarrow")
    return arrow is not None and isinstance(error, arrow.ArrowException)


def _message(error: Exception) -> str:
    """An error's text; of the operating system's without their numbers."""
    if isinstance(error, OSError) and not isinstance(error, ts.TablestoreError) and error.strerror:
        return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    return str(error)


def _say_interrupted(session: CommandRun) -> None:
    message = f"Interrupted: {session.what_landed(session.ids.given)}."
    if session.out.as_json:
        session.out.error_line({"error": {"type": "KeyboardInterrupt", "kind": "interrupted", "message": message}})
    else:
        session.out.note(message)


def _markup(example: str) -> str:
    return f"  {example}".replace("[", "\\[")
