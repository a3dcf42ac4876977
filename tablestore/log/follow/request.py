"""The request of a follower of a table, as a value: start, columns, filter, end. It is checked before anything is read."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tablestore import options as opt
from tablestore.errors import InvalidInputError
from tablestore.log.position import Position, fingerprint, parse_position, unnamed_fingerprint
from tablestore.names import check_reference
from tablestore.options import TableOptions, parse_int
from tablestore.store.context import TableContext
from tablestore.store.history.consumers import check_consumer_id
from tablestore.types.filter.predicate import Predicate, renamed
from tablestore.types.filter.predicatetext import to_sql
from tablestore.types.schema import TableSchema

ScanMode = Literal["full", "latest", "from-timestamp"]
OnDiscontinuity = Literal["raise", "skip", "restart"]
_MODES: tuple[ScanMode, ...] = ("full", "latest", "from-timestamp")
_WAYS: tuple[OnDiscontinuity, ...] = ("raise", "skip", "restart")


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The start of a reader: at ``position``, else where the consumer of that name stood, else where ``scan`` says.

    ``time_millis``: since the epoch; given for ``"from-timestamp"``, and only for that.
    """

    scan: ScanMode
    time_millis: int | None
    consumer_id: str | None
    position: Position | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumption:
    """The columns and rows that are read, from where, and how far.

    ``pairs``: with ``-U`` rows. ``as_written`` as of :class:`~tablestore.store.changes.changefeed.ChangeFeed`: without, changes are
    read from the file store. ``follow``: wait at the newest snapshot for the next one. ``stop`` is asked between snapshots.
    """

    columns: tuple[str, ...]
    predicate: Predicate | None
    pairs: bool
    start: Start
    follow: bool
    on_discontinuity: OnDiscontinuity
    stop: Callable[[], bool] | None
    as_written: bool = True

    def __post_init__(self) -> None:
        if self.on_discontinuity not in _WAYS:
            raise InvalidInputError(
                f"expected on_discontinuity to be one of {', '.join(_WAYS)}, found {self.on_discontinuity!r:.80}"
            )

    def fingerprint(self, schema: TableSchema) -> str:
        """The fingerprint of the columns and rows that are read; columns may be renamed."""
        ids = {field.name: f"#{field.id}" for field in schema.fields}
        return fingerprint(
            None if self.predicate is None else to_sql(renamed(self.predicate, ids)), self.pairs, as_written=self.as_written
        )

    def unnamed_fingerprint(self) -> str:
        """The same in places that do not name their table."""
        return unnamed_fingerprint(self.columns, None if self.predicate is None else to_sql(self.predicate), self.pairs)


def parse_start(
    context: TableContext, *, scan: str | None, time_millis: int | None, consumer_id: str | None, position: object
) -> Start:
    """The start of a reader, checked. What is None comes from the table's options ``log.scan…``. Raises InvalidInputError."""
    options = TableOptions(context.schema.options)
    scan_text = options.text(opt.LOG_SCAN) if scan is None else scan
    mode = next((mode for mode in _MODES if mode == scan_text), None)
    if mode is None:
        raise InvalidInputError(f"expected scan to be one of {', '.join(_MODES)}, found {scan_text!r:.80}", kind="scan-mode")
    if time_millis is None and mode == "from-timestamp":
        # The option is spelled mills; many would spell it millis.
        alias = options.get(opt.LOG_SCAN_TIMESTAMP_ALIAS)
        stored = options.value(opt.LOG_SCAN_TIMESTAMP) if alias is None else parse_int(alias)
        if not isinstance(stored, int):
            raise InvalidInputError(
                "Must specify a timestamp if you choose timestamp startup mode: pass timestamp=..., or set "
                "log.scan.timestamp-mills",
                kind="scan-mode",
            )
        time_millis = stored
    if time_millis is not None and mode != "from-timestamp":
        raise InvalidInputError(
            f'a timestamp goes with log.scan = from-timestamp (scan="from-timestamp"), found {mode!r}', kind="scan-mode"
        )
    if position is not None and consumer_id is not None:
        raise InvalidInputError("a named consumer goes on where it stood: give a position or a consumer_id, not both")
    return Start(
        scan=mode,
        time_millis=time_millis,
        consumer_id=None
        if consumer_id is None
        else check_consumer_id(check_reference(consumer_id, "consumer"), context.files.root_uri),
        position=None if position is None else parse_position(position),
    )
