"""The steps of a table that comes into being with its rows: what a crash, a failure or a cancellation may come between.

    BEGUN ─ RECORDED ─ DEFINED ─ FILE_OPENED ─ FILE_FILLED ─ FILE_CLOSED ─ MANIFESTS ─ COMMITTED ─ HINTED ─ MARKED
          ─ NAMING ─ (COPIED) ─ NAMED ─ FORGOTTEN

Each is a call of the store, or what comes before it; between two of them no other call changes the store (``test_creationsteps``).
Where the store renames directories nothing is copied. A log is made between MARKED and NAMING. The files are those of tasks, where
an engine has them.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Any, BinaryIO, Literal

_STAGED, _NAMED = r"_ctas/[^/]+/t/", r"\.db/t/"


@dataclass(frozen=True, slots=True)
class At:
    """Before or after a call of the store; ``path`` is searched for in the whole path."""

    when: Literal["before", "after"]
    op: str
    path: str

    def meets(self, when: str, op: str, path: str) -> bool:
        """Whether it is this one."""
        return (when, op) == (self.when, self.op) and re.search(self.path, path) is not None


class Step(Enum):
    """In order. The calls of a step are alternatives, by the kind of the store."""

    BEGUN = (At("before", "publish_if_absent", r"_ctas/[^/]+/intent\.json$"),)
    RECORDED = (At("after", "publish_if_absent", r"_ctas/[^/]+/intent\.json$"),)
    DEFINED = (At("after", "publish_if_absent", rf"{_STAGED}schema/schema-\d+$"),)
    FILE_OPENED = (At("after", "open_output", rf"{_STAGED}.*bucket-\d+/data-"),)
    FILE_FILLED = (At("before", "output.close", rf"{_STAGED}.*bucket-\d+/data-"),)
    FILE_CLOSED = (At("after", "output.close", rf"{_STAGED}.*bucket-\d+/data-"),)
    MANIFESTS = (At("after", "write_all", rf"{_STAGED}manifest/"), At("after", "write", rf"{_STAGED}manifest/manifest-"))
    COMMITTED = (At("after", "publish_if_absent", rf"{_STAGED}snapshot/snapshot-1$"),)
    HINTED = (At("after", "overwrite", rf"{_STAGED}snapshot/LATEST$"),)
    MARKED = (At("after", "publish_if_absent", r"_ctas/[^/]+/publishing\.json$"),)
    NAMING = (At("before", "rename_directory", r"_ctas/[^/]+/t$"), At("before", "write", rf"{_NAMED}snapshot/\.tmp-creation-"))
    COPIED = (At("after", "publish_if_absent", rf"{_NAMED}snapshot/snapshot-1$"),)
    NAMED = (At("after", "rename_directory", r"_ctas/[^/]+/t$"), At("after", "publish_if_absent", rf"{_NAMED}schema/schema-\d+$"))
    FORGOTTEN = (At("after", "delete", r"_ctas/[^/]+/intent\.json$"),)

    @property
    def is_visible(self) -> bool:
        """Whether the table has its name by then."""
        return self in (Step.NAMED, Step.FORGOTTEN)

    @property
    def is_of_a_task(self) -> bool:
        """Whether a task comes to it, where an engine has tasks."""
        return self in (Step.FILE_OPENED, Step.FILE_FILLED, Step.FILE_CLOSED)


def steps_of(*, renames: bool) -> list[Step]:
    """The steps over a store that renames directories, or copies files."""
    return [step for step in Step if not (renames and step is Step.COPIED)]


def step_at(when: str, op: str, path: str) -> Step | None:
    """The step that a call is."""
    return next((step for step in Step if any(at.meets(when, op, path) for at in step.value)), None)


def watch(store: type[Any], come: Callable[[Step], object]) -> None:
    """From now on ``come`` is called at each step that a store of this class comes to, in this process."""

    def note(when: str, op: str, files: Any, path: str) -> None:
        if (step := step_at(when, op, f"{files.root_uri}/{path}")) is not None:
            come(step)

    def noted(op: str) -> None:
        done = getattr(store, op, None)
        if done is None:
            return

        def call(self: Any, path: Any, *more: Any, **named: Any) -> Any:
            first = next(iter(path), "") if op == "write_all" else path
            note("before", op, self, first)
            found = done(self, path, *more, **named)
            note("after", op, self, first)
            return found

        setattr(store, op, call)

    opened = store.open_output

    @contextmanager
    def open_output(self: Any, path: str) -> Iterator[BinaryIO]:
        with opened(self, path) as file:
            note("after", "open_output", self, path)
            yield file
            note("before", "output.close", self, path)
        note("after", "output.close", self, path)

    for op in ("publish_if_absent", "write", "write_all", "overwrite", "delete", "rename_directory"):
        noted(op)
    store.open_output = open_output
