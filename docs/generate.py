"""The reference pages: written from the code when the documents are built, so that they cannot be out of date.

A hook of MkDocs (see ``mkdocs.yml``). Each entry of :data:`PAGES` is a page and the function that writes it; nothing of it is
committed. :class:`PlainDocstrings` lets mkdocstrings show docstrings that were written for readers of the source.
"""

import ast
import dataclasses
import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from enum import Enum, EnumType
from pathlib import Path
from typing import Any

import griffe
import pyarrow as pa
import typer.main
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import tablestore as ts
from tablestore import errors
from tablestore.catalog.settings import OPTIONS as CATALOG_OPTIONS
from tablestore.cli.main import program_app
from tablestore.environment.configuration import Configuration
from tablestore.environment.procedures.registry import KIND_WORDS, PROCEDURES
from tablestore.environment.rows.dynamicoptions import DYNAMIC_OPTIONS
from tablestore.environment.session import sessionsettings as session_options
from tablestore.io.lock import lockoptions
from tablestore.options import DAY_MS, GIB, HOUR_MS, KIB, MIB, MINUTE_MS, TABLE_OPTIONS, Option
from tablestore.sql.duckdb.functions.functiontable import NOTED, SAME, function_states
from tablestore.table.system.systemkinds import SYSTEM_TABLES
from tablestore.types.arrowtypes import to_arrow_schema
from tablestore.types.datatypes import Field
from tablestore.types.typestring import parse_type, type_to_sql

PROJECT = Path(__file__).resolve().parent.parent
SOURCES = ("tablestore", "connectors")
NOT_FOR_USERS = ("testing",)
ERRORS = {name: value for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, ts.TablestoreError)}

# What the Python API page shows, in this order. Text names are public; classes are what public calls return.
API: dict[str, tuple[str | type, ...]] = {
    "Opening": ("open_catalog", "open_table"),
    "Catalog": ("Catalog", "StagedTable", "SweepReport", "DeadHold"),
    "Table": ("Table",),
    "Reading": ("Scan", "ScanSplit", "Changes", "SystemTable"),
    "Following": ("ChangeBatch", "Position", "Restarted", "SchemaLanded"),
    "Writing": ("TableWriter", "Merge", "Rows"),
    "Topics": ("ingest", "dead_letter_table", "IngestCommit", "IngestReport"),
    "Delivering": ("deliver", "Topic", "DeliveryReport"),
    "SQL": ("TableEnvironment", "Restrictions", "Result", "Query", Configuration),
    "Altering": (
        "AddColumn",
        "DropColumn",
        "RenameColumn",
        "MoveColumn",
        "ChangeType",
        "ChangeNullability",
        "ChangeComment",
        "ChangeDefault",
        "AddCheck",
        "DropCheck",
        "SetOption",
        "RemoveOption",
        "SetTableComment",
        "SchemaChange",
    ),
    "Snapshots, tags, branches, consumers": ("Snapshot", "WriteCounts", "CommitKind", "RowKind", "Tag", "Branch", "Consumer"),
    "Reports": ("CompactReport", "ExpireReport", "CleanReport", "PartitionReport"),
    "Errors": tuple(ERRORS),
}
SPARK_API = (
    "pyspark_tablestore.relation.read",
    "pyspark_tablestore.relation.write",
    "pyspark_tablestore.streaming.batches.foreach_batch_writer",
    "pyspark_tablestore.register",
    "pyspark_tablestore.compact.compact",
    "pyspark_tablestore.publish.publish",
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages to those of the folder."""
    for name, write in PAGES.items():
        files.append(File.generated(config, f"reference/{name}.md", content=write()))
    return files


def api_page() -> str:
    """Every public name, and what public calls return."""
    lines = ["# Python API", "", "The public names of `import tablestore as ts`, and what their calls return.", ""]
    for heading, shown in API.items():
        lines += [f"## {heading}", ""]
        for one in shown:
            lines.append(f"::: tablestore.{one}" if isinstance(one, str) else f"::: {one.__module__}.{one.__qualname__}")
            # The constructor of a value shows its fields; tables, scans and writers are made by calls.
            shape = getattr(ts, one) if isinstance(one, str) else one
            is_value, is_enum = dataclasses.is_dataclass(shape), isinstance(shape, EnumType)
            options = {"merge_init_into_class": is_value, "show_if_no_docstring": is_enum}
            lines += [f"    options: {json.dumps(options)}", ""]
    return "\n".join(lines)


def spark_page() -> str:
    """What a Spark program calls, and the options of the data source."""
    lines = ["# Spark API", "", "[The guide to Spark](../guides/spark.md) says when to use which.", "", "## Functions", ""]
    for name in SPARK_API:
        lines += [f"::: {name}", ""]
    lines += ["## The data source", "", "::: pyspark_tablestore.sourceoptions"]
    lines += ["    options: {members: [], show_root_heading: false}", ""]
    lines += ["## The sink of streams", "", "::: pyspark_tablestore.streaming.streamoptions"]
    lines += ["    options: {members: [], show_root_heading: false}"]
    return "\n".join(lines)


def testing_page() -> str:
    """What ``tablestore.testing`` holds, module by module."""
    lines = ["# Testing", "", "For tests of your own stores, logs and locks: `pip install 'managed-tablestore[testing]'`.", ""]
    for file in sorted((PROJECT / "tablestore" / "testing").rglob("*.py")):
        if not file.stem.startswith("_"):
            name = ".".join(file.relative_to(PROJECT).with_suffix("").parts)
            lines += [f"## {name}", "", f"::: {name}", "    options: {show_root_heading: false}", ""]
    return "\n".join(lines)


def options_page() -> str:
    """The registry of table options as a table."""
    return f"""# Options of a table

Given as `options={{...}}` of `create_table`, as `-o KEY=VALUE` of `tablestore table create`, and changed with `SetOption` or
`tablestore table alter set`. They are stored with the table. An unknown key is refused, and the nearest known one is named.

Sizes are written as `128 mb` (`b`, `kb`, `mb`, `gb`, `tb`, powers of 1024; a bare number is bytes), durations as `1 h` (`ms`, `s`,
`min`, `h`, `d`; a bare number is milliseconds), names with commas between them. Keys with the prefix `fields.` set how
[single columns are merged](../guides/merge-engines.md); those with `log.kafka.` are settings of
[the client of the broker](../guides/kafka.md), and those with `tablestore.constraint.` are written by
[constraints](../guides/constraints.md).

{_options_table(TABLE_OPTIONS)}

## Options of one reference

Given in SQL behind the name of a table: [`FROM orders /*+ OPTIONS('scan.snapshot-id' = '1') */`](../guides/sql.md#read).

{_options_table(DYNAMIC_OPTIONS)}

## Options of a catalog

Given to `open_catalog`, where [`table-default.<option>`](../guides/catalogs.md#options-of-new-tables) stands for an option of its
new tables.

{_options_table(CATALOG_OPTIONS)}

## Options of a lock

Given among the options of the storage, for
[stores without conditional writes](../guides/storage.md#stores-without-conditional-writes).

{_options_table(lockoptions.OPTIONS)}"""


def _options_table(options: Mapping[str, Option]) -> str:
    lines = ["| option | type | default | meaning |", "|---|---|---|---|"]
    for option in options.values():
        kind = " \\| ".join(f"`{choice}`" for choice in option.choices) or option.kind
        default = shown_default(option)
        lines.append(f"| `{option.key}` | {kind} | {f'`{default}`' if default else ''} | {option.sentence} |")
    return "\n".join(lines)


def shown_default(option: Option) -> str:
    """The default of an option in the shortest text that parses to it."""
    value = option.default
    if value is None or value == ():
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if option.kind == "bytes" and isinstance(value, int):
        return next((f"{value // size} {name}" for size, name in _SIZES if value % size == 0), f"{value} b")
    if option.kind == "duration" and isinstance(value, int):
        return next((f"{value // size} {name}" for size, name in _TIMES if value % size == 0), f"{value} ms")
    return ",".join(value) if isinstance(value, tuple) else str(value)


_SIZES = ((GIB, "gb"), (MIB, "mb"), (KIB, "kb"))
_TIMES = ((DAY_MS, "d"), (HOUR_MS, "h"), (MINUTE_MS, "min"), (1_000, "s"))


def functions_page() -> str:
    """What the engine DuckDB makes of each function of Spark's, from its table of functions."""
    states = list(function_states())
    counts = Counter(one.state for one in states)
    lines = [
        "# Functions of Spark on DuckDB",
        "",
        "A query is written with the functions of Spark 4.3. The engine `duckdb` runs those whose answers have been compared with",
        f"Spark's ({counts[SAME] + counts[NOTED]} of {len(states)}), and refuses others by name. The engine `spark` has all.",
        "",
        "| function | on DuckDB | note, or why it is refused |",
        "|---|---|---|",
        *(f"| `{one.name}` | {one.state} | {_cell(one.note)} |" for one in states),
    ]
    return "\n".join(lines)


def system_tables_page() -> str:
    """Each system table with its columns, as a table without rows has them."""
    lines = [
        "# System tables",
        "",
        'What a table is made of, as tables: `table.system("files")`, `catalog.table("shop.orders$files")`,',
        '`tablestore table show shop.orders files`, and in Spark `load("…/orders$files")`.',
        "Names and types of columns are Paimon's. They are read-only, and each scan computes them anew.",
        "",
    ]
    catalog = ts.open_catalog("memory://documents")
    catalog.create_database("shop", ignore_if_exists=True)
    table = catalog.create_table("shop.orders", schema=pa.schema({"the columns of the table": "string"}), ignore_if_exists=True)
    for name in SYSTEM_TABLES:
        travels = "Takes `snapshot_id`, `timestamp` and `tag`." if _travels(table.system(name)) else ""
        lines += [f"## {name}", "", f"{_ABOUT[name]} {travels}", "", "| column | type |", "|---|---|"]
        own = set(table.schema.names)
        for field in table.system(name).fields:
            lines.append(f"| {field.name} | |" if field.name in own else f"| `{field.name}` | {type_to_sql(field.type)} |")
        lines.append("")
    return "\n".join(lines)


_ABOUT = {
    "snapshots": "The retained snapshots.",
    "schemas": "Every schema that the table has had.",
    "options": "The options that are stored with the table.",
    "manifests": "The manifests of a snapshot: of the newest one, or of the one that is asked for.",
    "files": "The live data files.",
    "partitions": "The partitions, with rows (before merging), files and bytes.",
    "buckets": "The buckets of every partition, with the same sums.",
    "tags": "The tags.",
    "branches": "The branches, without the table itself.",
    "consumers": "The named consumers: expiry keeps what they still have to read.",
    "audit_log": "The changes of the retained snapshots, oldest first. Those that nobody knows (an overwrite) are left out.",
    "ro": "Read-optimised: what a full compaction has left, read without merging. It may be behind the table.",
}


def _travels(table: ts.SystemTable) -> bool:
    try:
        table.scan(tag="none")
    except ts.InvalidInputError:
        return False
    except ts.NotFoundError:
        return True
    raise AssertionError("there is no such tag")


def types_page() -> str:
    """The types of columns as SQL and Arrow spell them, both ways: asked of a schema and of a table that is created."""
    lines = [
        "# Types",
        "",
        "Columns are given as an Arrow schema, or as SQL on the command line. Every type may be `NOT NULL`.",
        "",
        "| type | as Arrow |",
        "|---|---|",
    ]
    for text in _TYPES:
        field = Field(id=0, name="a", type=parse_type(text))
        lines.append(f"| ``{type_to_sql(field.type)}`` | `{to_arrow_schema([field]).field(0).type}` |")
    lines += ["", "## What becomes of other Arrow types", "", "| Arrow type | column |", "|---|---|"]
    catalog = ts.open_catalog("memory://documents")
    catalog.create_database("types", ignore_if_exists=True)
    for number, arrow in enumerate(_ARROW_TYPES):
        try:
            table = catalog.create_table(f"types.t{number}", schema=pa.schema([("a", arrow)]), ignore_if_exists=True)
            shown = f"`{type_to_sql(table.table_schema.fields[0].type)}`"
        except ts.UnsupportedError as error:
            shown = f"refused: {_escaped(error.message.partition(', which ')[2].partition(';')[0])}"
        lines.append(f"| `{arrow}` | {shown} |")
    return "\n".join(lines)


_TYPES: tuple[Any, ...] = (
    *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10, 2)", "DATE", "TIME(3)"),
    *("TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(9)", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
    *("STRING", "VARCHAR(10)", "CHAR(10)", "BYTES", "VARBINARY(10)", "BINARY(10)"),
    {"type": "ARRAY", "element": "INT"},
    {"type": "MAP", "key": "STRING", "value": "INT"},
    {"type": "MULTISET", "element": "STRING"},
    {"type": "ROW", "fields": [{"id": 1, "name": "b", "type": "INT"}]},
)
_ARROW_TYPES = (
    *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.float16(), pa.decimal256(50, 2)),
    *(pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string()), pa.binary(4), pa.large_binary()),
    *(pa.date64(), pa.time32("s"), pa.time64("us"), pa.timestamp("s"), pa.timestamp("ns", "UTC")),
    *(pa.duration("s"), pa.month_day_nano_interval(), pa.large_list(pa.int8()), pa.list_(pa.int8(), 3), pa.null()),
)


def command_line_page() -> str:
    """Every command with its arguments, options and examples."""
    found = list(commands())
    shared = {option for option in _declared(found[0][1]) if all(option in _declared(command) for _, command in found)}
    lines = ["# Command line", "", "[The guide](../guides/command-line.md) shows how it is used, and what the exit codes mean.", ""]
    lines += ["Every command takes:", "", *_parameters(p for p in found[0][1].params if p.opts[0] in shared)]
    noun = ""
    for path, command in sorted(found, key=lambda one: one[0]):
        if len(path) > 1 and path[0] != noun:
            noun = path[0]
        lines += [f"## {' '.join(path)}", "", *_paragraphs(command.help), ""]
        lines += _parameters(p for p in command.params if p.opts[0] not in shared and p.name != "help")
        examples = [text.strip().replace("\\[", "[") for text in command.epilog.split("\n\n")[1:]]
        lines += ["```console", *(f"$ {example}" for example in examples), "```", ""]
    return "\n".join(lines)


def commands(command: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command of the program with the words that lead to it."""
    command = command or typer.main.get_command(program_app())
    children = getattr(command, "commands", {})
    if not children:
        yield path, command
    for name, child in children.items():
        yield from commands(child, (*path, name))


def _declared(command: Any) -> set[str]:
    return {parameter.opts[0] for parameter in command.params if parameter.name != "help"}


def _parameters(parameters: Any) -> list[str]:
    rows = []
    for one in parameters:
        if one.param_type_name == "argument":
            shown = f"`{one.metavar or one.name.upper()}`"
        else:
            value = "" if one.is_flag else f" `{one.metavar or _kind(one.type_descriptor.annotation)}`"
            shown = ", ".join(f"`{name}`" for name in (*one.opts, *one.secondary_opts)) + value
        rows.append(f"| {shown.replace('|', '&#124;')} | {_cell(one.help)} |")
    return ["| argument or option | meaning |", "|---|---|", *rows, ""] if rows else []


def _kind(annotation: Any) -> str:
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return "|".join(str(choice.value) for choice in annotation)
    return "N" if annotation is int else "TEXT"


def errors_page() -> str:
    """Every kind of every error with the messages that the code has for it."""
    lines = [
        "# Errors and messages",
        "",
        "Every error is a `TablestoreError`. Its class says what a caller can do next, `error.kind` is a stable word for programs,",
        "and the message is for people: what was expected, what was found, where, and what to do. `…` is a name or a value.",
        "",
    ]
    found = messages()
    for name, error in ERRORS.items():
        kinds = found.get(name)
        if not kinds:
            continue
        lines += [f"## {name}", "", f"{error.__doc__}", ""]
        for kind in sorted(kinds):
            lines += [f"### {kind} {{#{name}-{kind}}}", "", *(f"- {text}" for text in sorted(kinds[kind])), ""]
    return "\n".join(lines)


def messages() -> dict[str, dict[str, set[str]]]:
    """Class -> kind -> messages, from every place in the source that makes one of our errors."""
    found: dict[str, dict[str, set[str]]] = {}
    files = [file.relative_to(PROJECT) for folder in SOURCES for file in sorted((PROJECT / folder).rglob("*.py"))]
    for file in (PROJECT / file for file in files if file.parts[1] not in NOT_FOR_USERS):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and (name := _last_name(node.func)) in ERRORS and node.args:
                kinds = [word.value for word in node.keywords if word.arg == "kind"]
                constant = [kind.value for kind in kinds if isinstance(kind, ast.Constant)]
                kind = constant[0] if constant else ERRORS[name].default_kind
                text = " ".join(_template(node.args[0]).split())
                if re.search(r"\w{3}", text):
                    found.setdefault(name, {}).setdefault(str(kind), set()).add(_escaped(text))
    return found


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _template(node: ast.expr) -> str:
    """The text of a message with ``…`` for what is filled in."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_template, node.values))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _template(node.left) + _template(node.right)
    return "…"


def _escaped(text: str) -> str:
    """Plain text in Markdown, but for its code spans."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([\\*_\[\]<>#|$])", r"\\\1", part) for part in parts)


def _cell(text: str) -> str:
    return _escaped(" ".join(text.split()))


def _paragraphs(text: str) -> list[str]:
    return [line for paragraph in text.split("\n\n") for line in (_cell(paragraph), "")]


class PlainDocstrings(griffe.Extension):
    """Docstrings as Markdown: the roles that tools for the source know (``:class:`~a.b.C```) become code."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = re.sub(r":(?:class|meth|func|mod|data|attr):`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", obj.docstring.value)


def procedures_page() -> str:
    """Every procedure of CALL with its parameters, and the settings of a session."""
    lines = [
        "# SQL procedures and settings",
        "",
        "`CALL sys.name(…)` takes arguments by their place or by their name (`retain_max => 5`). The first one is the table. An "
        "age is written as `'7 d'`, a time as `'2026-01-31 12:00:00'`, partitions as `'day=2026-01-31;day=2026-02-01'`.",
        "",
    ]
    for procedure in PROCEDURES.values():
        lines += [f"## {procedure.name}", "", procedure.sentence.replace("``", "`"), ""]
        lines += ["| argument | takes | default |", "|---|---|---|", "| `table` | text | |"]
        for parameter in procedure.parameters:
            default = "" if parameter.is_needed else "NULL" if parameter.default is None else str(parameter.default).upper()
            takes = " or ".join(KIND_WORDS[kind] for kind in parameter.kinds if kind in KIND_WORDS and kind is not type(None))
            lines.append(f"| `{parameter.name}` | {takes} | {default} |")
        lines.append("")
    lines += [
        "## Settings of a session",
        "",
        "`SET 'key' = 'value'`, `RESET 'key'`. Besides, every option of a table with the prefix `table-storage.`, but for those "
        "that belong to one table. Any other key is a setting of the engine.",
        "",
        _options_table(session_options.OPTIONS),
    ]
    return "\n".join(lines)


# What a requirement says of itself, and how that is shown.
_REASONS = {"open": "open", "instead": "decided otherwise"}


def requirements_page() -> str:
    """What the design asks for, and which tests hold it."""
    found = tomllib.loads((PROJECT / "docs" / "requirements.toml").read_text())["requirement"]
    lines = [
        "# Requirements and tests",
        "",
        "What the designs of managed tables (FLIP-188), temporary objects (FLIP-64), tables from queries (FLIP-218) and",
        "materialized tables ask for, and the tests that hold it. Where something else was decided, the reason is there, and the",
        "tests hold that.",
        "",
        "| | it asks that | tests |",
        "|---|---|---|",
    ]
    for one in found:
        tests = "<br>".join(f"`{test}`" for test in one["tests"])
        reason = next((f"<br>*{word}: {one[key]}*" for key, word in _REASONS.items() if key in one), "")
        lines.append(f"| `{one['id']}` | {one['says']} | {tests}{reason} |")
    return "\n".join(lines)


def _habits(habits: dict[str, Any]) -> list[str]:
    """What people of other systems write: what it does here, or what they are told."""
    return [
        "",
        "## From other systems",
        "",
        "What people of other libraries and databases write. In Python with:",
        "",
        "```python",
        habits["scene"].strip(),
        "```",
        "",
        "| of | one writes | and then |",
        "|---|---|---|",
        *(f"| {_cell(one['of'])} | {_code(one['code'])} | {_code(one['then'])} |" for one in habits["python_use"]),
        "",
        "In SQL, with a table `p (id BIGINT, note STRING, PRIMARY KEY (id) NOT ENFORCED)`, these run:",
        "",
        "| of | one writes |",
        "|---|---|",
        *(f"| {_cell(one['of'])} | {_code(one['text'])} |" for one in habits["sql_use"]),
        "",
        "These do not exist here, and the error says our way:",
        "",
        "| of | one writes | and reads |",
        "|---|---|---|",
        *(f"| {_cell(one['of'])} | {_code(one['code'])} | {_cell(one['says'])} |" for one in habits["python_mistake"]),
        *(f"| {_cell(one['of'])} | {_code(one['text'])} | {_cell(one['says'])} |" for one in habits["sql_mistake"]),
    ]


def first_afternoon_page() -> str:
    """What newcomers do, and what they get, from the tables that the tests run."""
    python, typed, spark, habits = (
        tomllib.loads((PROJECT / "tests" / "newcomer" / f"{name}.toml").read_text())
        for name in ("python", "commandline", "spark", "habits")
    )
    lines = [
        "# A first afternoon",
        "",
        "Ordinary uses of the Python API, the command line and Spark, and ordinary mistakes with what one gets to read. All",
        "of them are run as tests, each in a warehouse of its own. `…` stands for more text, such as the place of the warehouse.",
        "",
        "## Python",
        "",
        "The names come from:",
        "",
        "```python",
        python["scene"].strip(),
        "```",
        "",
        "| to | one writes | and then |",
        "|---|---|---|",
        *(f"| {_cell(one['does'])} | {_code(one['code'])} | {_code(one['then'])} |" for one in python["use"]),
        "",
        "Mistakes:",
        "",
        "| one writes | and gets | of kind | with the message |",
        "|---|---|---|---|",
        *(f"| {_code(one['code'])} | `{one['error']}` | `{one['kind']}` | {_cell(one['says'])} |" for one in python["mistake"]),
        "",
        "## The command line",
        "",
        "With `TABLESTORE_WAREHOUSE` set, a few files of rows, and the tables that these lines make:",
        "",
        "```console",
        typed["scene"].strip(),
        "```",
        "",
        "| to | one types | and reads |",
        "|---|---|---|",
        *(f"| {_cell(one['does'])} | {_typed(one['types'])} | {_cell(one['shows'])} |" for one in typed["use"]),
        "",
        "Mistakes:",
        "",
        "| one types | exit code | and reads |",
        "|---|---|---|",
        *(f"| {_typed(one['types'])} | {one['returns']} | {_cell(one['says'])} |" for one in typed["mistake"]),
        "",
        "## Spark",
        "",
        "With a session `spark`:",
        "",
        "```python",
        spark["scene"].strip(),
        "```",
        "",
        "| to | one writes | and then |",
        "|---|---|---|",
        *(f"| {_cell(one['does'])} | {_code(one['code'])} | {_code(one['then'])} |" for one in spark["use"]),
        *_habits(habits),
        "",
        "Mistakes. Spark puts the error's place in its code, and a trace of one frame, before the message:",
        "",
        "| one writes | and reads |",
        "|---|---|",
        *(f"| {_code(one['code'])} | {_cell(one['says'])} |" for one in spark["mistake"]),
    ]
    return "\n".join(lines)


def _typed(text: str) -> str:
    return "<br>".join(f"`` {line.replace('|', chr(92) + '|')} ``" for line in text.splitlines())


def _code(text: str) -> str:
    return "<br>".join(f"`` {line.replace('|', chr(92) + '|')} ``" for line in text.split("; "))


PAGES: dict[str, Callable[[], str]] = {
    "api": api_page,
    "spark": spark_page,
    "testing": testing_page,
    "options": options_page,
    "types": types_page,
    "functions": functions_page,
    "system-tables": system_tables_page,
    "procedures": procedures_page,
    "command-line": command_line_page,
    "errors": errors_page,
    "requirements": requirements_page,
    "first-afternoon": first_afternoon_page,
}
