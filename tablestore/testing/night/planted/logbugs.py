"""Bugs of a table over a log: each takes one rule out of the engine."""

# A bug is planted where a name is used, and that is not always where it is made.
# mypy: disable-error-code="attr-defined"

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tablestore.log import alterlog as alterlog_module
from tablestore.log import publishedlog as publishedlog_module
from tablestore.log import recordlimit as recordlimit_module
from tablestore.log.events import Restarted
from tablestore.log.follow.consumption import ChangeBatch, FileStoreConsumption
from tablestore.log.follow.hybrid import HybridConsumption
from tablestore.log.identity import Identity
from tablestore.log.publish import ownercheck as ownercheck_module
from tablestore.log.publish import publisher as publisher_module
from tablestore.log.publish.ownerfile import LogOwner
from tablestore.log.recordlimit import RecordTooLarge
from tablestore.store.context import TableContext
from tablestore.store.history.retentionleases import RetentionLeases

Plant = Callable[[pytest.MonkeyPatch], None]
BUGS: dict[str, Plant] = {}
FIRST: dict[str, int] = {}


def first_tried_at(seed: int) -> Callable[[Plant], Plant]:
    """The seed that is known to catch a bug; if the play changes, the others are tried too."""

    def note(plant: Plant) -> Plant:
        BUGS[plant.__name__], FIRST[plant.__name__] = plant, seed
        return plant

    return note


def nothing(*_: Any, **__: Any) -> None:
    return None


# whose log it is


def _takes_itself_for_the_owner(context: TableContext) -> LogOwner:
    return LogOwner(table=context.table_uuid, location=context.files.root_uri, incarnation="")


@first_tried_at(24)
def a_copy_takes_the_log_for_its_own(m: pytest.MonkeyPatch) -> None:
    m.setattr(publisher_module, "owner_here", _takes_itself_for_the_owner)
    m.setattr(publisher_module, "check_end", nothing)


@first_tried_at(3)
def the_end_of_the_log_may_be_of_any_history(m: pytest.MonkeyPatch) -> None:
    m.setattr(publisher_module, "check_history", nothing)
    m.setattr(publisher_module, "check_name", nothing)


@first_tried_at(11)
def the_log_may_be_ahead_of_its_table(m: pytest.MonkeyPatch) -> None:
    real = publisher_module.check_history

    def check(context: Any, identity: Any, log: Any, bucket: int, tail: Any, latest: Any) -> None:
        if tail.mark is not None and latest is not None and tail.mark.snapshot_id <= latest.id:
            real(context, identity, log, bucket, tail, latest)

    m.setattr(publisher_module, "check_history", check)


@first_tried_at(3)
def snapshots_of_one_id_are_taken_for_one_in_the_log(m: pytest.MonkeyPatch) -> None:
    m.setattr(publisher_module, "check_name", nothing)
    m.setattr(ownercheck_module, "check_name", nothing)


# what a position is of


@first_tried_at(2)
def a_position_is_a_place_of_any_table(m: pytest.MonkeyPatch) -> None:
    m.setattr(Identity, "checked", lambda _, position, **__: position.place)


@first_tried_at(29)
def a_position_of_a_table_made_again_is_one_of_another_history(m: pytest.MonkeyPatch) -> None:
    m.setattr(Identity, "_refuse_table", nothing)


@first_tried_at(2)
def a_position_is_a_place_of_any_history(m: pytest.MonkeyPatch) -> None:
    m.setattr(Identity, "_check", nothing)


@first_tried_at(6)
def only_the_snapshot_that_is_done_in_all_buckets_is_compared(m: pytest.MonkeyPatch) -> None:
    real = Identity._check

    def check(self: Identity, position: Any, snapshot_id: int, name: str | None, **how: Any) -> None:
        if snapshot_id == position.place.anchor:
            real(self, position, snapshot_id, name, **how)

    m.setattr(Identity, "_check", check)


# what a follower has to know besides rows


def _without_restarts_that_no_row_follows(batches: Iterator[ChangeBatch]) -> Iterator[ChangeBatch]:
    held: ChangeBatch | None = None
    for batch in batches:
        if held is not None and batch.in_frame and batch.event is None:
            yield held
        held = batch if isinstance(batch.event, Restarted) else None
        if held is None:
            yield batch


@first_tried_at(1)
def a_restart_is_told_only_with_rows(m: pytest.MonkeyPatch) -> None:
    for kind in (FileStoreConsumption, HybridConsumption):
        real = kind.batches
        m.setattr(kind, "batches", lambda self, real=real: _without_restarts_that_no_row_follows(real(self)))


@first_tried_at(27)
def a_schema_lands_in_silence(m: pytest.MonkeyPatch) -> None:
    m.setattr(FileStoreConsumption, "schema_landed", nothing)


# rows that are larger than the log takes


@first_tried_at(18)
def a_row_that_no_log_takes_is_written(m: pytest.MonkeyPatch) -> None:
    m.setattr(publishedlog_module, "refuse_large_rows", nothing)


@first_tried_at(24)
def a_row_that_is_too_large_holds_back_what_comes_before_it(m: pytest.MonkeyPatch) -> None:
    m.setattr(publisher_module, "within_limit", lambda found, *_, **__: found)


@first_tried_at(24)
def a_row_that_is_too_large_is_left_out(m: pytest.MonkeyPatch) -> None:
    def within(found: Any, limit: int | None, *_: Any, **__: Any) -> Iterator[Any]:
        for records in found:
            for place in range(len(records)):
                if limit is None or records.sizes[place] <= limit:
                    yield records.slice(place, place + 1)

    m.setattr(publisher_module, "within_limit", within)


@first_tried_at(24)
def a_row_that_is_too_large_is_not_named(m: pytest.MonkeyPatch) -> None:
    m.setattr(recordlimit_module, "_unpublished", lambda *_, **__: RecordTooLarge("some row is too large"))


@first_tried_at(24)
def a_raised_limit_is_not_heard_of_by_writers(m: pytest.MonkeyPatch) -> None:
    m.setattr(alterlog_module, "forget_record_limit", nothing)


@first_tried_at(29)
def a_log_that_ended_holds_expiry_back(m: pytest.MonkeyPatch) -> None:
    m.setattr(RetentionLeases, "release", nothing)
