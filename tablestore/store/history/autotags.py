"""Creates and removes automatic tags: one for each hour, two hours or day, with the commits.

    tag.automatic-creation = process-time, tag.creation-period = daily

    commits     a      b │ c                  c is the first after midnight: it tags b, with the name of the day that has ended
    tags               2024-01-31

A tag keeps the last snapshot of its period (plus ``tag.creation-delay``). Its name and its snapshot follow from commit times alone.
Where a crash has left a tag out, the next commit of the period that follows makes it.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tablestore import options as opt
from tablestore.errors import AlreadyExistsError, InvalidInputError, NotFoundError
from tablestore.format.paths import tag_path
from tablestore.format.snapshot import Snapshot
from tablestore.options import TableOptions
from tablestore.store.context import TableContext
from tablestore.store.history.branches import branch_that_needs, delete_tag
from tablestore.store.history.storeclock import check_clock
from tablestore.store.history.tags import Tags, create_tag

_PERIODS = {"daily": timedelta(days=1), "hourly": timedelta(hours=1), "two-hours": timedelta(hours=2)}


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoTagging:
    """The options of automatic tags. ``zone``: None is the machine's. ``keep``: how many; ``retained_millis``: how long; None: all,
    for ever."""

    period: timedelta
    delay: timedelta
    dashes: bool
    zone: tzinfo | None
    keep: int | None
    retained_millis: int | None

    def closed_period(self, time_millis: int) -> tuple[str, int]:
        """The name of the last period that ended (delay included) at ``time_millis``, and the first moment after it."""
        now = datetime.fromtimestamp(time_millis / 1000, UTC).astimezone(self.zone).replace(tzinfo=None) - self.delay
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        start = midnight + (now - midnight) // self.period * self.period
        moment = (start + self.delay).replace(tzinfo=self.zone)
        # Without a zone a naive time is the machine's.
        return self.name_of(start - self.period), round(moment.timestamp() * 1000)

    def name_of(self, start: datetime) -> str:
        """The name of the period that begins at ``start``."""
        day = "%Y-%m-%d" if self.dashes else "%Y%m%d"
        return start.strftime(day if self.period >= timedelta(days=1) else f"{day}-%H")

    def is_name(self, name: str) -> bool:
        """True if a tag of that name is an automatic one."""
        day = "%Y-%m-%d" if self.dashes else "%Y%m%d"
        try:
            start = datetime.strptime(name, day if self.period >= timedelta(days=1) else f"{day}-%H")
        except ValueError:
            return False
        return self.name_of(start) == name


def auto_tagging(options: TableOptions) -> AutoTagging | None:
    """The automatic tags that a table's options ask for; None: no automatic tags. Raises InvalidInputError for an unknown
    time zone."""
    if options.text(opt.TAG_AUTOMATIC_CREATION) != "process-time":
        return None
    keep, zone = options.value(opt.TAG_NUM_RETAINED_MAX), options.value(opt.PROCESS_TIME_ZONE)
    try:
        time_zone = ZoneInfo(str(zone)) if zone else None
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise InvalidInputError(
            f"option {opt.PROCESS_TIME_ZONE.key}: expected a time zone such as Europe/Berlin, found {str(zone)[:80]!r}",
            kind="invalid-option",
        ) from error
    return AutoTagging(
        period=_PERIODS[options.text(opt.TAG_CREATION_PERIOD)],
        delay=timedelta(milliseconds=options.integer(opt.TAG_CREATION_DELAY)),
        dashes=options.text(opt.TAG_PERIOD_FORMATTER) == "with_dashes",
        zone=time_zone,
        keep=keep if isinstance(keep, int) else None,
        retained_millis=default_retention(options),
    )


def default_retention(options: TableOptions) -> int | None:
    """The retention of a tag that was made without a time, in milliseconds; None: for ever."""
    value = options.value(opt.TAG_DEFAULT_TIME_RETAINED)
    return value if isinstance(value, int) else None


def tag_automatically(context: TableContext, committed: Snapshot) -> str | None:
    """Make the tag of the period that ended before ``committed``; returns its name, None if none is due or it is there.

    More automatic tags than ``tag.num-retained-max`` go, the oldest first.
    """
    tagging = context.once(_auto_tagging)
    if tagging is None:
        return None
    name, boundary = tagging.closed_period(committed.time_millis)
    if context.files.exists(tag_path(name)):
        return None
    try:
        snapshot = context.snapshots.at_time(boundary - 1)
        tags = Tags(context.files)
        create_tag(
            tags,
            context.snapshots,
            name,
            snapshot,
            ids=context.ids,
            clock=context.clock,
            orphan_age_s=context.settings.orphan_age_s,
            retained_millis=tagging.retained_millis,
        )
    except (NotFoundError, AlreadyExistsError):
        # No snapshot from that time is left, or another writer made the tag first.
        return None
    if tagging.keep is not None:
        automatic = [tag.name for tag in tags.all() if tagging.is_name(tag.name)]
        for old in automatic[: -tagging.keep]:
            _delete_unless_needed(context, old)
    return name


def expire_tags(context: TableContext, *, dry_run: bool = False) -> tuple[str, ...]:
    """Delete the tags whose time is over; returns their names. A tag that a branch began at stays."""
    tags, now_ms = Tags(context.files), context.clock.now_ms()
    over = [tag for tag in tags.all() if tag.is_expired(now_ms) and branch_that_needs(context, tag) is None]
    if over and not dry_run:
        check_clock(context.files, context.clock, context.ids)
        for tag in over:
            _delete_unless_needed(context, tag.name)
    return tuple(tag.name for tag in over)


def _auto_tagging(context: TableContext) -> AutoTagging | None:
    return auto_tagging(TableOptions(context.schema.options))


def _delete_unless_needed(context: TableContext, name: str) -> None:
    try:
        delete_tag(context, name)
    except NotFoundError:
        pass
    except InvalidInputError as error:
        if error.kind != "tag-in-use":
            raise
