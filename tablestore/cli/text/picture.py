"""The LSM trees of a table, drawn: a bar for every file along the keys of its bucket, and how many runs lie over each other.

bucket 1   3 runs, 4 files, 2.1 MB, a read merges up to 3 runs
  L0  ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒        12.0 KB
  L0        ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒   10.1 KB
  L5  ██████████▓▓▓▓▓▓▓▓▓▓████     2.0 MB
      222333333333333333333322
"""

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.text import Text

from tablestore.cli.text.safetext import safe
from tablestore.table.inspect.bucketpicture import BucketPicture, RunPicture, cells_of
from tablestore.types.schema import POSTPONE_BUCKET
from tablestore.units import human_bytes

SHOWN_RUNS = 12
_LABEL = 6
_RIGHT = 22
_BLOCKS = ("▒", "█", "▓")
_ASCII = ("-", "#", "=")
_LEVEL_STYLES = ("yellow", "green", "cyan")


def draw_buckets(pictures: Sequence[BucketPicture], console: Console, *, keyed: bool) -> RenderableType:
    """The buckets one below the other, as wide as the console."""
    cells = max(console.width - _LABEL - _RIGHT, 10)
    marks = _BLOCKS if (console.encoding or "").lower().startswith("utf") else _ASCII
    return Group(*(line for picture in pictures for line in [*_bucket(picture, cells, marks, keyed=keyed), Text("")]))


def _bucket(picture: BucketPicture, cells: int, marks: Sequence[str], *, keyed: bool) -> list[Text]:
    place = f"{safe(picture.partition)} / " if picture.partition else ""
    head = Text(f"{place}bucket {_number(picture.bucket)}", style="bold")
    facts = [f"{picture.files} file(s)", human_bytes(picture.size_bytes), f"{picture.rows:,} rows stored"]
    if keyed:
        facts = [f"{len(picture.runs)} run(s)", *facts, _merging(picture)]
    if picture.debt_bytes:
        facts.append(f"debt {human_bytes(picture.debt_bytes)}")
    if picture.due is not None:
        facts.append(f"due now: {safe(picture.due)}")
    head.append(f"   {', '.join(facts)}", style="default")
    shown, left_out = picture.runs, 0
    if len(shown) > SHOWN_RUNS:
        left_out = len(shown) - SHOWN_RUNS
        shown = (*shown[: SHOWN_RUNS // 2], *shown[-SHOWN_RUNS // 2 :])
    lines = [head]
    for number, run in enumerate(shown):
        if left_out and number == SHOWN_RUNS // 2:
            lines.append(Text(f"      … {left_out} more runs", style="dim"))
        lines.append(_run(run, cells, marks, keyed=keyed))
    if keyed and len(picture.runs) > 1:
        lines.append(_depth(picture, cells))
    return lines


def _run(run: RunPicture, cells: int, marks: Sequence[str], *, keyed: bool) -> Text:
    bar = [" "] * cells
    for number, file in enumerate(run.files):
        # Neighbours look different, so that one sees where a file ends.
        mark = marks[0] if keyed and run.level == 0 else marks[1 + number % 2]
        for cell in cells_of(file, cells):
            bar[cell] = mark
    label = f"  L{run.level}" if keyed else "  "
    style = _LEVEL_STYLES[0 if run.level == 0 else 1 + run.level % 2] if keyed else _LEVEL_STYLES[2]
    retractions = sum(file.retractions for file in run.files)
    note = f"  -{retractions:,}" if retractions else ""
    return Text.assemble((f"{label:{_LABEL}}", "dim"), ("".join(bar), style), f"  {human_bytes(run.size_bytes):>9}", (note, "red"))


def _depth(picture: BucketPicture, cells: int) -> Text:
    line = Text(" " * _LABEL)
    for depth in picture.depth(cells):
        style = "dim" if depth < 2 else "green" if depth < 4 else "yellow" if depth < 8 else "bold red"
        line.append(" " if depth == 0 else str(depth) if depth < 10 else "+", style=style)
    return line + Text("  runs here", style="dim")


def _merging(picture: BucketPicture) -> str:
    if picture.bucket == POSTPONE_BUCKET:
        return "wait for a compaction, and are not read"
    if picture.most_merged < 2:
        return "nothing to merge"
    share = 100 * picture.merged_bytes / max(picture.size_bytes, 1)
    return f"a read merges up to {picture.most_merged} runs ({share:.0f} % of the bytes)"


def _number(bucket: int) -> str:
    return "postponed" if bucket == POSTPONE_BUCKET else str(bucket)
