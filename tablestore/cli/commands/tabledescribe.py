"""``tablestore table describe``: what a table is, and what its buckets look like inside."""

from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

import tablestore as ts
from tablestore.cli.command import CommandRun, TableName, command
from tablestore.cli.text.render import OutputColumn
from tablestore.cli.text.safetext import safe
from tablestore.options import (
    MATERIALIZED_PREFIX,
    OWN_MATERIALIZED_PREFIX,
    TYPE,
    checks_of,
    is_check,
    is_materialized,
    is_table_option,
)
from tablestore.redaction import shown_options
from tablestore.types.typestring import type_to_sql
from tablestore.units import human_bytes, iso_time

if TYPE_CHECKING:
    from tablestore.table.inspect.bucketpicture import BucketPicture
    from tablestore.table.upkeep.undone import UpkeepReport

app = typer.Typer()

_COLUMNS = (
    OutputColumn("name", "column"),
    OutputColumn("type", "type"),
    OutputColumn("role", "role"),
    OutputColumn("comment", "comment"),
)
DRAWN_BUCKETS = 8
_HIDDEN_SIZE = "unknown, and no picture: rules of the catalog service hide rows or columns from you"
SVG_WIDTH = 120


@command(
    app,
    "describe",
    "tablestore table describe shop.orders",
    "tablestore table describe shop.orders --all --svg orders.svg",
    "tablestore table describe shop.orders --json | jq .totals.debt_bytes",
)
def describe(
    session: CommandRun,
    name: TableName,
    every: Annotated[bool, typer.Option("--all", help="Draw every bucket, not only those with the most work left.")] = False,
    svg: Annotated[Path | None, typer.Option("--svg", metavar="FILE", help="Write the picture as SVG too.")] = None,
) -> None:
    """Columns, keys, options, and the LSM tree of every bucket: levels, runs, sizes, overlap, and what compaction has to do."""
    from tablestore.cli.text.picture import draw_buckets
    from tablestore.table.inspect.bucketpicture import describe_buckets
    from tablestore.table.upkeep.undone import upkeep

    table = session.table(name)
    context = table.context
    latest = context.shown_latest()
    # A picture tells of files in which there are hidden rows.
    hides = context.view is not None
    if hides and svg is not None:
        context.check_sees_all("a picture of its buckets")
    pictures = () if hides else describe_buckets(context, latest)
    drawn, left = _chosen(pictures, every), upkeep(context, lambda: table.change_log)
    if svg is not None:
        _write_svg(svg, f"{table.name}, snapshot {latest.id if latest else 'none'}", drawn, keyed=bool(table.primary_key))
    if session.out.as_json:
        document = _document(table, latest, pictures, left)
        session.out.document({**document, "totals": None, "buckets": None} if hides else document)
        return
    _facts(session, table, latest, None if hides else pictures, left)
    session.out.show(Text(""))
    _columns(session, table)
    if drawn:
        session.out.show(Text(""))
        session.out.show(draw_buckets(drawn, session.out.console, keyed=bool(table.primary_key)))
        if len(drawn) < len(pictures):
            session.out.note(f"the {len(drawn)} buckets of {len(pictures)} with the most work left; --all draws every one")


def _chosen(pictures: "Sequence[BucketPicture]", every: bool) -> "Sequence[BucketPicture]":
    if every or len(pictures) <= DRAWN_BUCKETS:
        return pictures
    worst = sorted(pictures, key=lambda picture: (-picture.debt_bytes, -picture.size_bytes))[:DRAWN_BUCKETS]
    return [picture for picture in pictures if picture in worst]


def _document(
    table: "ts.Table", latest: "ts.Snapshot | None", pictures: "Sequence[BucketPicture]", left: "UpkeepReport"
) -> dict[str, Any]:
    return {
        "name": table.name,
        "location": table.location,
        "comment": table.comment,
        "schema_id": table.table_schema.id,
        "columns": [
            {"id": field.id, "name": field.name, "type": type_to_sql(field.type), "comment": field.description}
            for field in table.table_schema.fields
        ],
        "primary_key": list(table.primary_key),
        "partition_by": list(table.partition_by),
        "constraints": dict(sorted(checks_of(table.options()).items())),
        "options": dict(sorted(shown_options(table.options(), is_table_option).items())),
        "snapshot": None
        if latest is None
        else {
            "id": latest.id,
            "time": iso_time(latest.time_millis),
            "kind": str(latest.commit_kind),
            "records": latest.total_record_count,
        },
        "totals": _totals(pictures),
        "upkeep": {
            "undone": [
                {
                    "chore": task.task,
                    "snapshot": task.snapshot_id,
                    "time": iso_time(task.time_millis),
                    "kind": task.error_kind,
                    "error": task.error,
                    "way_out": task.way_out,
                }
                for task in left.undone
            ],
            "unpublished_snapshots": left.unpublished,
            "due_snapshots": left.due_snapshots,
            "held_by": left.held_by,
        },
        "buckets": [
            {
                "partition": picture.partition,
                "bucket": picture.bucket,
                "files": picture.files,
                "rows": picture.rows,
                "bytes": picture.size_bytes,
                "read_merges": picture.most_merged,
                "merged_bytes": picture.merged_bytes,
                "debt_bytes": picture.debt_bytes,
                "due_bytes": picture.due_bytes,
                "due": picture.due,
                "runs": [
                    {"level": run.level, "files": len(run.files), "rows": run.rows, "bytes": run.size_bytes} for run in picture.runs
                ],
            }
            for picture in pictures
        ],
    }


def _totals(pictures: "Sequence[BucketPicture]") -> dict[str, int]:
    return {
        "buckets": len(pictures),
        "files": sum(picture.files for picture in pictures),
        "runs": sum(len(picture.runs) for picture in pictures),
        "rows": sum(picture.rows for picture in pictures),
        "bytes": sum(picture.size_bytes for picture in pictures),
        "read_merges": max((picture.most_merged for picture in pictures), default=0),
        "debt_bytes": sum(picture.debt_bytes for picture in pictures),
        "due_bytes": sum(picture.due_bytes for picture in pictures),
        "due_buckets": sum(picture.due is not None for picture in pictures),
    }


def _facts(
    session: CommandRun,
    table: "ts.Table",
    latest: "ts.Snapshot | None",
    pictures: "Sequence[BucketPicture] | None",
    left: "UpkeepReport",
) -> None:
    totals = _totals(pictures or ())
    debt, due, buckets = totals["debt_bytes"], human_bytes(totals["due_bytes"]), totals["due_buckets"]
    facts = {
        "name": table.name,
        "location": table.location,
        "comment": table.comment,
        "kind": f"keyed by {', '.join(table.primary_key)}" if table.primary_key else "append-only",
        "partition_by": ", ".join(table.partition_by) or None,
        **_materialized(table),
        "snapshot": None if latest is None else f"{latest.id}, {latest.commit_kind} {session.out.age(latest.time_millis)}",
        "size": _HIDDEN_SIZE
        if pictures is None
        else f"{human_bytes(totals['bytes'])} in {totals['files']} file(s) of {totals['buckets']} bucket(s), "
        f"{totals['rows']:,} rows stored",
        "merging": f"a read merges up to {totals['read_merges']} run(s)" if table.primary_key and latest and pictures else None,
        "debt": f"{human_bytes(debt)} to rewrite until nothing is merged: tablestore compact --full {table.name}" if debt else None,
        "due": f"{due} of that in {buckets} bucket(s) now: tablestore compact {table.name}" if buckets else None,
        "undone": "\n".join(
            f"{task.task} after snapshot {task.snapshot_id}, {session.out.age(task.time_millis)}: {task.error}; {task.way_out}"
            for task in left.undone
        )
        or None,
        "log": f"lacks {left.unpublished} snapshot(s): tablestore log publish {table.name}" if left.unpublished else None,
        "expiry": _expiry(left, table.name),
        "constraints": "\n".join(f"{name}: {text}" for name, text in sorted(checks_of(table.options()).items())) or None,
        "options": ", ".join(f"{key}={value}" for key, value in sorted(_shown_options(table).items()) if not is_check(key)) or None,
    }
    columns = [OutputColumn(key, key.replace("_", " ")) for key in facts]
    session.out.facts(facts, columns)


def _shown_options(table: "ts.Table") -> Mapping[str, str]:
    """The options that the user may have said: a definition has lines of its own."""
    options = shown_options(table.options(), is_table_option)
    if not is_materialized(options):
        return options
    own = (MATERIALIZED_PREFIX, OWN_MATERIALIZED_PREFIX)
    return {key: text for key, text in options.items() if key != TYPE.key and not key.startswith(own)}


def _materialized(table: "ts.Table") -> dict[str, str | None]:
    """The definition of a materialized table, and who refreshes it."""
    from tablestore.materialized.materializedtable import definition_of, upkeep_of

    if not is_materialized(table.options()):
        return {}
    try:
        definition, upkeep = definition_of(table.table_schema), upkeep_of(table.table_schema)
    except ts.FormatError as error:
        return {"definition": error.message}
    return {
        "query": definition.original_query,
        "freshness": str(definition.freshness),
        "refreshes": f"{definition.refresh_mode.lower()}, {upkeep.status.lower()}",
        "refreshed_by": upkeep.handler.summary if upkeep.handler is not None else None,
    }


def _expiry(left: "UpkeepReport", name: str) -> str | None:
    due = f"{left.due_snapshots} snapshot(s) are due: tablestore expire snapshots {name}" if left.due_snapshots else None
    return "; ".join(text for text in (due, f"held back by {left.held_by}" if left.held_by else None) if text) or None


def _columns(session: CommandRun, table: "ts.Table") -> None:
    records = []
    for field in table.table_schema.fields:
        roles = [
            word
            for word, names in (("key", table.primary_key), ("partition", table.partition_by), ("bucket", _bucket_key(table)))
            if field.name in names
        ]
        record = {"name": field.name, "type": type_to_sql(field.type), "role": ", ".join(roles), "comment": field.description or ""}
        records.append(record)
    if session.out.is_terminal:
        session.out.show(session.out.table(_COLUMNS, records))
        return
    for record in records:
        session.out.say("  ".join(text for text in record.values() if text))


def _bucket_key(table: "ts.Table") -> Sequence[str]:
    """Only where it is not the key anyway."""
    return table.table_schema.bucket_keys if "bucket-key" in table.options() else ()


def _write_svg(path: Path, title: str, pictures: "Sequence[BucketPicture]", *, keyed: bool) -> None:
    from rich.console import Console, Group, RenderableType

    from tablestore.cli.text.picture import draw_buckets

    console = Console(record=True, width=SVG_WIDTH, file=StringIO(), force_terminal=True, color_system="truecolor")
    picture: RenderableType = draw_buckets(pictures, console, keyed=keyed) if pictures else Text("The table is empty.")
    console.print(Group(picture))
    path.write_text(console.export_svg(title=safe(title)), encoding="utf-8")
