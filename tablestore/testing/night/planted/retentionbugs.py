"""Bugs of clean, expiry, tags and branches: each takes one rule out of the engine."""

# A bug is planted where a name is used, and that is not always where it is made.
# mypy: disable-error-code="attr-defined"

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import tablestore.store.history.branches as branches_module
import tablestore.store.history.expire as expire_module
import tablestore.store.history.orphans as orphans_module
import tablestore.store.history.references as references_module
import tablestore.store.history.unreferenced as unreferenced_module
import tablestore.table.history.restore as restore_module
from tablestore.format.manifest.manifestfile import EntryKind
from tablestore.store.history.references import Needs

Plant = Callable[[pytest.MonkeyPatch], None]
BUGS: dict[str, Plant] = {}
FIRST: dict[str, int] = {}


def bug(plant: Plant) -> Plant:
    """Note a bug."""
    BUGS[plant.__name__] = plant
    return plant


def first_tried_at(seed: int) -> Callable[[Plant], Plant]:
    """The seed that is known to catch a bug; if the schedules change, the others are tried too."""

    def note(plant: Plant) -> Plant:
        FIRST[plant.__name__] = seed
        return plant

    return note


def nothing(*_: Any, **__: Any) -> tuple[()]:
    return ()


@bug
@first_tried_at(2)
def expiry_forgets_tags(m: pytest.MonkeyPatch) -> None:
    m.setattr(expire_module, "nearest_tags", nothing)


@bug
@first_tried_at(5)
def expiry_forgets_branches(m: pytest.MonkeyPatch) -> None:
    m.setattr(expire_module, "other_branches", nothing)


@bug
@first_tried_at(3)
def expiry_deletes_files_that_moved_to_another_level(m: pytest.MonkeyPatch) -> None:
    def dead_files(self: Any, snapshots: Any) -> dict[str, Any]:
        deltas = [entry for snapshot in snapshots for entry in self._manifests.delta(snapshot)]
        return {entry.file.file_name: entry for entry in deltas if entry.kind is EntryKind.DELETE}

    m.setattr(expire_module._Expiry, "_dead_files", dead_files)


@bug
@first_tried_at(18)
def tags_are_read_before_earliest_is_written(m: pytest.MonkeyPatch) -> None:
    real, real_tags = expire_module._Expiry.run, expire_module.tags_twice
    # By thread: several runs may be under way, and none must see the tags of another.
    early = threading.local()

    def run(self: Any, retention: Any) -> Any:
        early.tags = self._branch.tags.all()
        try:
            return real(self, retention)
        finally:
            early.tags = None

    def tags_twice(*given: Any) -> Any:
        seen = getattr(early, "tags", None)
        return real_tags(*given) if seen is None else seen

    m.setattr(expire_module._Expiry, "run", run)
    m.setattr(expire_module, "tags_twice", tags_twice)


@bug
@first_tried_at(15)
def a_deleted_tag_takes_what_others_need(m: pytest.MonkeyPatch) -> None:
    m.setattr(unreferenced_module, "_needs", lambda context, *_: Needs(context.manifests))


@bug
@first_tried_at(135)
def a_branch_is_not_looked_for_when_its_tag_goes(m: pytest.MonkeyPatch) -> None:
    m.setattr(branches_module, "branch_that_needs", lambda *_: None)
    m.setattr(unreferenced_module, "other_branches", nothing)


@bug
@first_tried_at(99)
def a_branch_needs_the_changelog_that_its_tag_did_not_keep(m: pytest.MonkeyPatch) -> None:
    m.setattr(references_module, "has_changelog", lambda *_: True)
    m.setattr(branches_module, "has_changelog", lambda *_: True)


@bug
@first_tried_at(2)
def clean_forgets_branches(m: pytest.MonkeyPatch) -> None:
    real = orphans_module._branches
    m.setattr(orphans_module, "_branches", lambda *arguments: real(*arguments)[:1])


@bug
def clean_takes_young_files(m: pytest.MonkeyPatch) -> None:
    real = orphans_module._old
    m.setattr(orphans_module, "_old", lambda main, directory, older_than: real(main, directory, 2**62))


@bug
@first_tried_at(8)
def a_rollback_adds_the_old_names_again(m: pytest.MonkeyPatch) -> None:
    m.setattr(restore_module, "copy_data_file", lambda context, entry: replace(entry, kind=EntryKind.ADD))


@bug
@first_tried_at(18)
def a_rollback_forgets_what_landed_meanwhile(m: pytest.MonkeyPatch) -> None:
    real = restore_module.plan_removal
    known: dict[Any, Any] = {}

    def plan_removal(plan: Any, *arguments: Any) -> Any:
        return known.setdefault(id(plan), (plan, real(plan, *arguments)))[1]

    m.setattr(restore_module, "plan_removal", plan_removal)
