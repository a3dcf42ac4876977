"""Bugs of commits, compactions and expiry: each takes one rule out of the engine, and names the rules that guard against it."""

# A bug is planted where a name is used, and that is not always where it is made.
# mypy: disable-error-code="attr-defined"

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tablestore.format.binaryrow import decode_row
from tablestore.format.snapshot import Snapshot
from tablestore.io.memory import MemoryFileStore
from tablestore.lsm.compaction import keyedcompaction as compaction_module
from tablestore.lsm.keyorder import KeyOrder
from tablestore.store import deletionvectors as deletionvectors_module
from tablestore.store.commit import committer as commit_module
from tablestore.store.commit import conflict as conflict_module
from tablestore.store.commit import outcome as publish_module
from tablestore.store.commit.committer import Committer
from tablestore.store.commit.deduplication import CommitDeduplication
from tablestore.store.commit.outcome import Outcome, SnapshotPublisher
from tablestore.store.history import expire as expire_module
from tablestore.store.history import orphans as orphans_module
from tablestore.store.history import references as references_module
from tablestore.store.manifests import Manifests
from tablestore.store.replay import Replays
from tablestore.store.sequence import SequenceNumbers
from tablestore.store.snapshots import Snapshots
from tablestore.store.write.datawriter import DataWriter
from tablestore.store.write.dynamicbuckets import DynamicCommit
from tablestore.store.write.storedvalues import KeepCommit
from tablestore.table.write import delete as delete_module
from tablestore.table.write import overwrite as overwrite_module
from tablestore.table.write.deletemarks import MarkingDelete
from tablestore.table.write.writer import TableWriter
from tablestore.testing.deterministic import SeededIds

Patch = Callable[[pytest.MonkeyPatch], None]
BUGS: dict[str, tuple[Patch, tuple[str, ...]]] = {}
"""By name how to plant it, and the rules that find it."""


def caught_by(*rules: str) -> Callable[[Patch], Patch]:
    """Note a bug, and the rules of the commit (of our own tests) that find it."""

    def note(plant: Patch) -> Patch:
        BUGS[plant.__name__] = (plant, rules)
        return plant

    return note


def nothing(*_: Any, **__: Any) -> None:
    return None


@caught_by("columns_that_an_upsert_keeps_are_those_of_the_newest_snapshot")
def look_up_kept_columns_once(m: pytest.MonkeyPatch) -> None:
    m.setattr(KeepCommit, "_is_stale", lambda *_: False)


@caught_by("a_publish_never_replaces_what_is_there")
def publish_by_a_rename_that_overwrites(m: pytest.MonkeyPatch) -> None:
    def publish(self: MemoryFileStore, path: str, data: bytes) -> bool:
        self.overwrite(path, data)
        return True

    m.setattr(MemoryFileStore, "publish_if_absent", publish)


@caught_by(
    "a_writer_paused_before_the_link_while_others_expire_past_it_does_not_land_on_a_dead_history",
    "a_dead_snapshot_right_below_the_history_is_told_from_a_landed_one",
)
def skip_the_look_at_the_base(m: pytest.MonkeyPatch) -> None:
    m.setattr(SnapshotPublisher, "_look_back", lambda *_, **__: Outcome.LANDED)


@caught_by("a_writer_paused_after_the_link_while_others_expire_its_base_has_landed_once")
def take_a_missing_base_for_a_dead_id(m: pytest.MonkeyPatch) -> None:
    def settle(self: SnapshotPublisher, snapshot: Snapshot, base: Snapshot | None, *_: Any, **__: Any) -> Outcome:
        if base is None or self.snapshots.find(base.id) is not None:
            return Outcome.LANDED
        return self._dead(snapshot, doubtful=False)

    m.setattr(SnapshotPublisher, "_look_back", settle)


@caught_by("a_base_that_a_late_duplicate_brought_back_proves_nothing")
def trust_the_base_alone(m: pytest.MonkeyPatch) -> None:
    m.setattr(publish_module, "_added_names", lambda _: frozenset())


@caught_by("a_publish_that_was_applied_but_reported_failed_lands_once")
def take_every_occupant_for_another(m: pytest.MonkeyPatch) -> None:
    outcomes = iter([Outcome.LANDED, Outcome.LOST])
    m.setattr(SnapshotPublisher, "_look_back", lambda *_, **__: next(outcomes, Outcome.LANDED))


@caught_by("an_unknown_outcome_deletes_nothing_and_lands_whole_when_it_lands_late")
def clean_up_after_an_unknown_outcome(m: pytest.MonkeyPatch) -> None:
    real = SnapshotPublisher._unknown

    def unknown(self: SnapshotPublisher, snapshot: Snapshot, why: str) -> Exception:
        self.files.delete(f"manifest/{snapshot.delta_manifest_list}")
        return real(self, snapshot, why)

    m.setattr(SnapshotPublisher, "_unknown", unknown)


@caught_by("the_newest_snapshot_is_found_in_a_listing_and_not_in_a_hint")
def trust_the_latest_hint(m: pytest.MonkeyPatch) -> None:
    real = Snapshots.latest

    def latest(self: Snapshots) -> Snapshot | None:
        if not self._files.exists("snapshot/LATEST"):
            return real(self)
        return self.read(int(self._files.read("snapshot/LATEST")))

    m.setattr(Snapshots, "latest", latest)


@caught_by("ids_below_a_gap_are_ignored_by_every_search")
def look_below_gaps(m: pytest.MonkeyPatch) -> None:
    m.setattr(Snapshots, "live_ids", Snapshots.listed_ids)
    m.setattr(Snapshots, "live", Snapshots.read)


@caught_by(
    "an_open_handle_is_not_misled_by_a_dead_file_under_the_id_that_it_saw_last",
)
def trust_the_id_that_was_seen(m: pytest.MonkeyPatch) -> None:
    def probed(self: Snapshots, seen: Any) -> Any:
        newest = seen.newest
        while (found := self.find(newest.id + 1)) is not None:
            newest = found
        known = self.find(newest.id)
        return None if known is None else replace(seen, newest=known, data=self.read_file(newest.id))

    m.setattr(Snapshots, "_probed", probed)


@caught_by("an_open_handle_does_not_go_on_from_a_dead_file_above_the_id_that_it_saw_last")
def look_at_what_was_seen_before_what_follows(m: pytest.MonkeyPatch) -> None:
    real = Snapshots._probed

    def probed(self: Snapshots, seen: Any) -> Any:
        is_there = self._files.read(f"snapshot/snapshot-{seen.newest.id}") == seen.data
        newest = seen.newest
        while self._files.exists(f"snapshot/snapshot-{newest.id + 1}"):
            newest = self.read(newest.id + 1)
        return replace(seen, newest=newest, data=self.read_file(newest.id)) if is_there else real(self, seen)

    m.setattr(Snapshots, "_probed", probed)


@caught_by("an_open_handle_is_not_misled_by_a_dead_file_under_the_id_that_it_saw_last")
def let_an_open_handle_ignore_earliest(m: pytest.MonkeyPatch) -> None:
    m.setattr(Snapshots, "earliest_hint", lambda _: 1)


@caught_by("snapshots_are_ordered_by_id_even_if_the_clock_goes_back")
def trust_the_clock_for_order(m: pytest.MonkeyPatch) -> None:
    def first(*values: Any) -> Any:
        return values[0] if len(values) > 1 and values[0] > 1_000_000_000_000 else max(*values)

    m.setattr(commit_module, "max", first, raising=False)


@caught_by("two_creators_of_snapshot_1_leave_each_others_metadata_alone")
def the_same_nonce_for_every_attempt(m: pytest.MonkeyPatch) -> None:
    m.setattr(SeededIds, "nonce", lambda _: b"the same 16 byte")


@caught_by("what_a_snapshot_names_is_durable_before_the_snapshot_is_published")
def drop_the_sync_of_manifests(m: pytest.MonkeyPatch) -> None:
    m.setattr(Manifests, "sync", nothing)


@caught_by("what_a_snapshot_names_is_durable_before_the_snapshot_is_published")
def drop_the_sync_of_data_files(m: pytest.MonkeyPatch) -> None:
    def finish(self: DataWriter) -> Sequence[Any]:
        self.flush()
        entries, self._entries = tuple(self._entries), []
        return entries

    m.setattr(DataWriter, "finish", finish)


@caught_by(
    "a_commit_to_a_table_that_was_dropped_and_created_again_is_refused",
    "a_commit_with_an_older_schema_that_means_other_rows_is_refused",
)
def skip_check_table(m: pytest.MonkeyPatch) -> None:
    m.setattr(commit_module, "check_table", nothing)


@caught_by("a_commit_with_an_older_schema_that_means_other_rows_is_refused")
def let_rows_of_any_schema_land(m: pytest.MonkeyPatch) -> None:
    m.setattr(conflict_module, "obstacles", lambda schemas: ())


@caught_by("a_commit_with_an_older_schema_of_the_same_rows_lands_unless_it_replaces_values_of_a_new_column")
def let_late_rows_replace_values_of_new_columns(m: pytest.MonkeyPatch) -> None:
    m.setattr(conflict_module, "added_columns", lambda written, newest: ())


@caught_by("a_commit_into_a_partition_with_another_bucket_count_is_refused")
def skip_check_buckets(m: pytest.MonkeyPatch) -> None:
    m.setattr(commit_module, "check_buckets", nothing)


@caught_by("files_older_than_half_the_orphan_age_are_refused")
def skip_the_age_check(m: pytest.MonkeyPatch) -> None:
    m.setattr(Committer, "_check_age", nothing)


@caught_by("files_that_are_no_longer_live_are_not_deleted_again")
def skip_check_deletes(m: pytest.MonkeyPatch) -> None:
    m.setattr(commit_module, "check_deletes", nothing)


@caught_by("an_overwrite_replaces_what_landed_meanwhile_too")
def plan_the_deletes_of_an_overwrite_once(m: pytest.MonkeyPatch) -> None:
    real = overwrite_module.overwriting

    def effect(**options: Any) -> Any:
        plan, planned = options["plan_deletes"], list[Any]()

        def once(latest: Any) -> Any:
            planned.append(plan(latest)) if not planned else None
            return planned[0]

        return real(**{**options, "plan_deletes": once})

    m.setattr(overwrite_module, "overwriting", effect)


@caught_by("a_delete_by_condition_looks_again_at_what_landed_meanwhile")
def delete_by_a_stale_plan(m: pytest.MonkeyPatch) -> None:
    m.setattr(delete_module, "check_unchanged", nothing)


@caught_by("a_numbered_commit_is_applied_once", "a_zombie_and_its_replacement_commit_a_number_once")
def skip_the_replay_filter(m: pytest.MonkeyPatch) -> None:
    m.setattr(Replays, "highest", nothing)


@caught_by("the_mark_of_a_job_outlives_expiry_and_commits_of_other_engines")
def keep_marks_in_snapshots_only(m: pytest.MonkeyPatch) -> None:
    m.setattr(Replays, "raise_mark", nothing)


@caught_by("the_marks_in_snapshots_hold_where_the_side_file_is_lost")
def keep_marks_in_side_files_only(m: pytest.MonkeyPatch) -> None:
    m.setattr(Replays, "_from_snapshots", nothing)


@caught_by("one_user_either_numbers_its_commits_or_does_not")
def let_a_user_mix(m: pytest.MonkeyPatch) -> None:
    m.setattr(Replays, "check_identifier", nothing)


@caught_by("a_failed_commit_is_not_repeated_as_an_empty_one")
def let_a_failed_writer_go_on(m: pytest.MonkeyPatch) -> None:
    m.setattr(TableWriter, "_check_usable", nothing)


@caught_by("the_row_of_the_later_snapshot_wins", "a_retraction_of_the_later_snapshot_wins")
def skip_the_renumbering(m: pytest.MonkeyPatch) -> None:
    m.setattr(commit_module, "pick_outdated", lambda *_: frozenset())


@caught_by("the_later_flush_wins_within_a_commit_also_when_only_its_first_file_met_another")
def renumber_only_the_files_that_met_another(m: pytest.MonkeyPatch) -> None:
    real = commit_module.pick_outdated

    def pick(own: Any, landed: Any, overlap: Any) -> frozenset[int]:
        return frozenset(i for i, entry in enumerate(own) if real([entry], landed, overlap))

    m.setattr(commit_module, "pick_outdated", pick)


@caught_by("one_rewrite_leaves_room_for_the_commits_that_land_next")
def renumber_without_headroom(m: pytest.MonkeyPatch) -> None:
    real = commit_module.renumber
    m.setattr(commit_module, "renumber", lambda *a, **o: real(*a, **{**o, "attempt": 0}))


@caught_by("numbers_go_on_above_what_foreign_snapshots_brought", "without_a_recorded_bound_numbers_go_on_above_all_live_files")
def forget_foreign_numbers(m: pytest.MonkeyPatch) -> None:
    m.setattr(SequenceNumbers, "next_after", lambda self, latest: latest.id * 10 if latest else 0)


@caught_by("a_writer_that_failed_to_flush_does_not_commit_the_rest")
def commit_what_is_left_of_a_flush(m: pytest.MonkeyPatch) -> None:
    def flush(self: DataWriter) -> None:
        for run in self._buffer.flush():
            self._entries.extend(self._written(run))

    m.setattr(DataWriter, "flush", flush)


@caught_by("two_deletes_in_one_file_lose_neither")
def forget_the_rows_that_are_marked_already(m: pytest.MonkeyPatch) -> None:
    m.setattr(deletionvectors_module, "union", lambda _, marked: marked)


@caught_by("a_compaction_that_read_a_file_before_rows_of_it_were_marked_does_not_bring_them_back")
def take_vectors_away_with_their_files_in_a_compaction_too(m: pytest.MonkeyPatch) -> None:
    real = commit_module.changed_index
    m.setattr(commit_module, "changed_index", lambda *given, keeps_rows, **named: real(*given, **named))


@caught_by("marks_in_a_file_that_another_compaction_rewrote_are_made_anew")
def mark_rows_of_files_that_are_gone(m: pytest.MonkeyPatch) -> None:
    m.setattr(commit_module, "check_vectors", nothing)
    m.setattr(commit_module, "check_deletes", nothing)
    m.setattr(commit_module, "check_levels", nothing)


@caught_by("a_delete_by_condition_does_not_delete_a_newer_row_that_is_not_settled_yet")
def delete_what_is_seen_and_not_what_is_there(m: pytest.MonkeyPatch) -> None:
    m.setattr(delete_module, "settled", lambda context, latest: latest)


@caught_by(
    "writers_that_make_buckets_at_the_same_time_put_no_key_into_two",
    "an_overwrite_that_builds_the_hash_index_anew_is_noticed_by_a_writer_with_the_old_one",
)
def believe_in_the_buckets_that_were_chosen(m: pytest.MonkeyPatch) -> None:
    def revise(self: DynamicCommit, latest: Snapshot | None, own: Any, attempt: int) -> Any:
        index = self.index_of(latest)
        for entry in own:
            known = self._bucket_map(index, entry.partition).find(hashes := self._hashes_of(entry))
            self._added.setdefault(entry.partition, {})[entry.bucket] = hashes[known != entry.bucket]
        return own

    m.setattr(DynamicCommit, "revise", revise)


# compactions


@caught_by("a_retraction_stays_as_long_as_an_older_row_may_lie_below_it")
def drop_retractions_in_every_compaction(m: pytest.MonkeyPatch) -> None:
    real = compaction_module.plan_task
    m.setattr(compaction_module, "plan_task", lambda *a, **o: real(*a, **{**o, "drop_retractions": True}))


@caught_by("a_level_that_was_filled_meanwhile_takes_no_file_that_meets_it")
def skip_check_levels(m: pytest.MonkeyPatch) -> None:
    m.setattr(commit_module, "check_levels", nothing)


@caught_by("a_level_with_nan_and_both_zeros_is_in_order")
def compare_decoded_keys_as_python_does(m: pytest.MonkeyPatch) -> None:
    m.setattr(KeyOrder, "__call__", lambda self, key: tuple((0 if v is None else 1, v) for v in decode_row(key, self.types)))


@caught_by(
    "a_compaction_of_files_that_were_replaced_meanwhile_is_dropped", "a_compaction_brings_nothing_back_that_an_overwrite_replaced"
)
def skip_check_deletes_of_compactions(m: pytest.MonkeyPatch) -> None:
    m.setattr(commit_module, "check_deletes", nothing)


@caught_by("a_file_that_moves_to_another_level_is_still_there")
def add_before_deleting(m: pytest.MonkeyPatch) -> None:
    # A file has one name in every level: read after its ADD, the DELETE is the last word about it.
    real = Manifests.write_manifests

    def write(self: Manifests, entries: Sequence[Any], written: Any) -> Any:
        return real(self, sorted(entries, key=lambda entry: entry.kind), written)

    m.setattr(Manifests, "write_manifests", write)


@caught_by("rows_that_were_marked_during_a_compaction_stay_deleted")
def accept_a_compaction_of_stale_deletion_vectors(m: pytest.MonkeyPatch) -> None:
    real = commit_module.changed_index
    m.setattr(commit_module, "changed_index", lambda *a, **o: real(*a, **{**o, "keeps_rows": False}))


@caught_by("marks_of_files_that_a_compaction_replaced_are_made_again")
def mark_by_a_stale_plan(m: pytest.MonkeyPatch) -> None:
    real = MarkingDelete.plan_deletes

    def plan_once(self: MarkingDelete, latest: Any) -> Any:
        return real(self, latest) if not self._marks else ()

    m.setattr(MarkingDelete, "plan_deletes", plan_once)
    m.setattr(commit_module, "check_vectors", nothing)


# messages that are committed again


@caught_by(
    "messages_that_are_committed_again_change_nothing",
    "an_overwrite_that_is_committed_again_changes_nothing",
    "messages_of_an_unknown_outcome_are_committed_once",
    "two_commits_of_the_same_messages_at_once_are_one",
    "a_part_of_messages_that_landed_is_not_committed_with_others",
)
def commit_messages_whatever_has_landed(m: pytest.MonkeyPatch) -> None:
    m.setattr(CommitDeduplication, "find", nothing)
    m.setattr(CommitDeduplication, "check_files", nothing)


@caught_by("messages_that_are_committed_again_change_nothing")
def take_no_note_of_what_landed(m: pytest.MonkeyPatch) -> None:
    m.setattr(CommitDeduplication, "known", lambda *_: {})


@caught_by("a_replay_that_is_refused_removes_nothing_that_landed")
def discard_what_the_table_names(m: pytest.MonkeyPatch) -> None:
    m.setattr(CommitDeduplication, "named", lambda *_: frozenset())


@caught_by("messages_whose_files_are_gone_are_refused")
def commit_files_that_are_gone(m: pytest.MonkeyPatch) -> None:
    m.setattr(CommitDeduplication, "check_files", nothing)


@caught_by("two_commits_of_the_same_messages_at_once_are_one")
def remove_renumbered_files_of_others_at_once(m: pytest.MonkeyPatch) -> None:
    def retire(self: Committer, request: Any, files: Any, kept: Any) -> None:
        names = {entry.file.file_name for entry in kept}
        self._remove([entry for entry in files.message.entries if entry.file.file_name not in names])

    m.setattr(Committer, "_retire", retire)


# expiry and the removal of orphans


@caught_by("an_expiry_that_dies_leaves_no_snapshot_that_cannot_be_read")
def expire_without_writing_earliest_first(m: pytest.MonkeyPatch) -> None:
    m.setattr(Snapshots, "write_earliest_hint", nothing)


@caught_by("what_a_tag_needs_outlives_its_snapshot")
def expire_what_tags_need(m: pytest.MonkeyPatch) -> None:
    m.setattr(expire_module, "nearest_tags", lambda *_: ())


@caught_by("what_a_branch_needs_outlives_the_snapshots_of_the_others")
def expire_what_branches_need(m: pytest.MonkeyPatch) -> None:
    m.setattr(expire_module, "nearest_tags", lambda *_: ())
    m.setattr(expire_module, "other_branches", lambda _: ())


@caught_by("a_tag_that_is_renamed_during_a_clean_keeps_its_files")
def clean_after_a_single_look(m: pytest.MonkeyPatch) -> None:
    m.setattr(references_module, "tags_twice", lambda tags, *_: tags.all())
    m.setattr(orphans_module, "range", lambda *given: range(1) if given == (2,) else range(*given), raising=False)
