"""Decides which snapshots may expire. Values in, a range out.

    first ─────────── end ───────────── latest
      └─ these expire ─┘ └─ these stay ─┘

Strictly oldest first. Everything above ``num_max`` goes whatever its age; of the others those whose *successor* is older than
the retention (until then they were the newest state), as long as ``num_min`` stay. The limit of one run bounds both.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tablestore import options as opt
from tablestore.errors import InvalidInputError
from tablestore.options import TableOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """The retention policy: how many snapshots stay, how long, and how many go in one run."""

    num_min: int
    num_max: int
    age_millis: int
    limit: int

    def checked(self, table: str) -> "Retention":
        """The policy itself. Raises InvalidInputError where it would keep less than the minimum."""
        if self.num_min < 1 or self.num_max < 1:
            raise InvalidInputError(
                f"table {table}: expected to keep at least 1 snapshot, found retain_min={self.num_min}, "
                f"retain_max={self.num_max}; the newest snapshot is the table, drop the table if it is to go",
                kind="invalid-retention",
            )
        if self.num_max < self.num_min:
            raise InvalidInputError(
                f"table {table}: expected to keep at least retain_min ({opt.SNAPSHOT_NUM_RETAINED_MIN.key}) = {self.num_min} "
                f"snapshots, found retain_max={self.num_max}; pass retain_min={self.num_max} too if that few are enough",
                kind="invalid-retention",
            )
        if self.limit < 1 or self.age_millis < 0:
            raise InvalidInputError(
                f"table {table}: expected a limit from 1 and an age from 0, found {self.limit} and {self.age_millis} ms",
                kind="invalid-retention",
            )
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingDue:
    """The span in which nothing can expire: before the id ``few_until`` lands, and before ``many_from`` lands up to the time
    ``until_millis``. If others expire something meanwhile it is longer."""

    few_until: int = 0
    many_from: int = 0
    until_millis: int = 0

    @classmethod
    def of(cls, first: int, second_millis: int | None, retention: Retention) -> "NothingDue":
        """The value for a history whose first snapshot is ``first``, and the one above it was committed at ``second_millis``."""
        few_until, many_from = first + retention.num_min, first + retention.num_max
        if second_millis is None:
            return cls(few_until=few_until)
        return cls(few_until=few_until, many_from=many_from, until_millis=second_millis + retention.age_millis)

    def holds(self, latest: int, now_millis: int) -> bool:
        """True if nothing can be due now, with this newest id."""
        return latest < self.few_until or (latest < self.many_from and now_millis <= self.until_millis)


def snapshot_retention(options: Mapping[str, str]) -> Retention:
    """The retention options of a table's snapshots."""
    parsed = TableOptions(options)
    return Retention(
        num_min=parsed.integer(opt.SNAPSHOT_NUM_RETAINED_MIN),
        num_max=parsed.integer(opt.SNAPSHOT_NUM_RETAINED_MAX),
        age_millis=parsed.integer(opt.SNAPSHOT_TIME_RETAINED),
        limit=parsed.integer(opt.SNAPSHOT_EXPIRE_LIMIT),
    )


def changelog_retention(options: Mapping[str, str]) -> Retention | None:
    """The retention options of the changes of expired snapshots; None if changes go with their snapshots."""
    parsed, snapshots = TableOptions(options), snapshot_retention(options)

    def either(option: opt.Option, fallback: int) -> int:
        value = parsed.value(option)
        return value if isinstance(value, int) else fallback

    changes = Retention(
        num_min=either(opt.CHANGELOG_NUM_RETAINED_MIN, snapshots.num_min),
        num_max=either(opt.CHANGELOG_NUM_RETAINED_MAX, snapshots.num_max),
        age_millis=either(opt.CHANGELOG_TIME_RETAINED, snapshots.age_millis),
        limit=snapshots.limit,
    )
    longer = changes.num_min > snapshots.num_min or changes.num_max > snapshots.num_max or changes.age_millis > snapshots.age_millis
    return changes if longer else None


def consumer_lifetime(options: Mapping[str, str]) -> int | None:
    """After how many milliseconds without a move a consumer is dead; None for never."""
    value = TableOptions(options).value(opt.CONSUMER_EXPIRATION_TIME)
    return value if isinstance(value, int) else None


def pick_end(
    first: int,
    latest: int,
    *,
    time_of: Callable[[int], int],
    now_millis: int,
    retention: Retention,
) -> int:
    """The id at which expiry stops: ids from ``first`` up to, not including, it may go. At least ``latest`` stays.

    ``time_of`` gives a snapshot's commit time in milliseconds.
    """
    must_end = latest - retention.num_max + 1
    bound = min(latest - retention.num_min + 1, first + retention.limit, latest)
    end = first
    while end < bound and (end < must_end or time_of(end + 1) < now_millis - retention.age_millis):
        end += 1
    return end
