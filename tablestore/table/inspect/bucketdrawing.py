"""Draws the LSM tree of a bucket as HTML with SVG: a bar for every file along the keys, one line a run, and how many runs overlap.

    level    where its files lie             files   rows   size
    L0       [.........]                         1     10   1 KB
    L5       [....][....][....]                  3    900   2 MB
    reads    ▁▁▂▂▂▁▁                             merged here: 2 runs

Pages give the pictures their colours by the classes of the elements; notebooks, which have no style sheet, show the
colours that the elements bring. Nothing in them is a style attribute or a script.
"""

from collections.abc import Sequence

from tablestore.htmltext import HtmlText, html_element, html_join
from tablestore.table.inspect.bucketpicture import BucketPicture, FileBar, RunPicture
from tablestore.types.schema import POSTPONE_BUCKET
from tablestore.units import human_bytes

SHOWN_RUNS = 12
SHOWN_FILES = 400
_WIDTH, _HEIGHT, _DEPTH_HEIGHT, _DEPTH_CELLS = 1000.0, 16, 28, 100
_LEAST_WIDTH = 3.0
_FRESH, _COMPACTED, _DEPTH = "#d08700", "#1f8a9e", "#8a63c9"


def bucket_table(picture: BucketPicture, *, keyed: bool) -> HtmlText:
    """One bucket as a table: a line a run with its picture, and below how many runs a read merges along the keys."""
    shown, left_out = _chosen(picture.runs)
    lines = [html_element("tr", None, *_run_cells(run, keyed=keyed)) for run in shown]
    if left_out:
        note = html_element("td", {"colspan": 5, "class": "quiet"}, f"… {left_out} more runs")
        lines.insert(SHOWN_RUNS // 2, html_element("tr", None, note))
    if keyed and len(picture.runs) > 1 and picture.bucket != POSTPONE_BUCKET:
        most = f"up to {picture.most_merged} runs" if picture.most_merged > 1 else "no run over another"
        cells = (
            html_element("th", {"scope": "row"}, "overlap"),
            html_element("td", {"class": "picture"}, depth_drawing(picture)),
            html_element("td", {"colspan": 3, "class": "quiet"}, most),
        )
        lines.append(html_element("tr", {"class": "depth"}, *cells))
    heads = ("level" if keyed else "files", "along the keys" if keyed else "along the rows", "files", "rows", "size")
    head = (
        html_element("th", {"scope": "col", "class": "number" if place > 1 else None}, text) for place, text in enumerate(heads)
    )
    return html_element(
        "table",
        {"class": "lsm"},
        html_element("caption", {"class": "aside"}, bucket_sentence(picture, keyed=keyed)),
        html_element("thead", None, html_element("tr", None, *head)),
        html_element("tbody", None, *lines),
    )


def bucket_title(picture: BucketPicture) -> str:
    """The name of a bucket, with its partition."""
    bucket = "postponed bucket" if picture.bucket == POSTPONE_BUCKET else f"bucket {picture.bucket}"
    return f"{picture.partition} / {bucket}" if picture.partition else bucket


def bucket_sentence(picture: BucketPicture, *, keyed: bool) -> str:
    """The figures of a bucket, and the work that is left in it."""
    parts = [_files(picture.files), human_bytes(picture.size_bytes), f"{picture.rows:,} rows stored"]
    if picture.bucket == POSTPONE_BUCKET:
        parts.append("waits for a compaction, and is not read")
    elif keyed:
        share = 100 * picture.merged_bytes / max(picture.size_bytes, 1)
        merges = f"a read merges up to {picture.most_merged} runs ({share:.0f} % of the bytes)"
        parts.append(merges if picture.most_merged > 1 else "nothing to merge")
    if picture.debt_bytes:
        parts.append(f"debt {human_bytes(picture.debt_bytes)}")
    if picture.due is not None:
        parts.append(f"due now: {picture.due}")
    return ", ".join(parts)


def run_drawing(run: RunPicture, *, keyed: bool) -> HtmlText:
    """The files of a run as bars. Of many files neighbours are drawn as one bar."""
    fresh = keyed and run.level == 0
    bars = []
    for number, (left, right, title) in enumerate(_bars(run.files)):
        width = max((right - left) * _WIDTH - 1, _LEAST_WIDTH)
        look = {"class": f"file {'fresh' if fresh else 'compacted'} {'odd' if number % 2 else 'even'}"}
        place = {"x": min(left * _WIDTH, _WIDTH - width), "y": 1, "width": width, "height": _HEIGHT - 2, "rx": 1}
        colour = {"fill": _FRESH if fresh else _COMPACTED, "fill-opacity": 0.75 if number % 2 else 1}
        bars.append(html_element("rect", {**look, **place, **colour}, html_element("title", None, title)))
    return _picture(f"level {run.level}: {_files(len(run.files))}, {human_bytes(run.size_bytes)}", _HEIGHT, bars)


def depth_drawing(picture: BucketPicture) -> HtmlText:
    """The number of runs along the keys of a bucket, as steps."""
    depths = picture.depth(_DEPTH_CELLS)
    highest, cell = max(*depths, 1), _WIDTH / _DEPTH_CELLS
    steps = []
    for number, depth in enumerate(depths):
        if depth:
            height = depth / highest * (_DEPTH_HEIGHT - 2)
            box = {"x": number * cell, "y": _DEPTH_HEIGHT - height, "width": cell - 1, "height": height}
            steps.append(html_element("rect", {"class": f"overlap {_heat(depth)}", **box, "fill": _DEPTH}))
    return _picture(f"runs that lie over each other along the keys: up to {highest}", _DEPTH_HEIGHT, steps)


def _run_cells(run: RunPicture, *, keyed: bool) -> Sequence[HtmlText]:
    deletes = sum(file.retractions for file in run.files)
    rows = f"{run.rows:,} ({deletes:,} deletes)" if deletes else f"{run.rows:,}"
    return (
        html_element("th", {"scope": "row"}, f"L{run.level}" if keyed else "all"),
        html_element("td", {"class": "picture"}, run_drawing(run, keyed=keyed)),
        html_element("td", {"class": "number"}, f"{len(run.files):,}"),
        html_element("td", {"class": "number"}, rows),
        html_element("td", {"class": "number"}, human_bytes(run.size_bytes)),
    )


def _chosen(runs: Sequence[RunPicture]) -> tuple[Sequence[RunPicture], int]:
    if len(runs) <= SHOWN_RUNS:
        return runs, 0
    return (*runs[: SHOWN_RUNS // 2], *runs[-SHOWN_RUNS // 2 :]), len(runs) - SHOWN_RUNS


def _bars(files: Sequence[FileBar]) -> list[tuple[float, float, str]]:
    step = -(-len(files) // SHOWN_FILES)
    groups = [files[start : start + step] for start in range(0, len(files), max(step, 1))]
    return [(group[0].left, max(file.right for file in group), _title(group)) for group in groups]


def _title(group: Sequence[FileBar]) -> str:
    figures = f"{sum(file.rows for file in group):,} rows, {human_bytes(sum(file.size_bytes for file in group))}"
    return f"{group[0].name}: {figures}" if len(group) == 1 else f"{len(group):,} files: {figures}"


def _files(number: int) -> str:
    return "1 file" if number == 1 else f"{number:,} files"


def _heat(depth: int) -> str:
    return "deep" if depth > 4 else "some" if depth > 1 else "flat"


def _picture(label: str, height: int, shapes: Sequence[HtmlText]) -> HtmlText:
    frame = {"class": "bar", "viewBox": f"0 0 {_WIDTH:.0f} {height}", "preserveAspectRatio": "none", "width": 400, "height": height}
    return html_element("svg", {**frame, "role": "img", "aria-label": label}, html_join(shapes))
