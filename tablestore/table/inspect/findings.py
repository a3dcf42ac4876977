"""Findings of a check: one fault of a table each, and the list in which they are noted."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from tablestore.errors import TablestoreError
from tablestore.format.paths import MAIN_BRANCH

Severity = Literal["problem", "warning"]
# In the order in which they are done: an expiry writes hints itself.
RepairKind = Literal["finish-expiry", "remove-intent", "remove-branch", "write-hints"]

RESTORE = "restore the file from a copy; until then read a snapshot that does not need it"
# Stands for the table's name in what to do: only who opened the table knows the name.
TABLE = "<table>"
REPAIR = f"put it right with: tablestore repair {TABLE}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One fault of a table, and the remedy. ``kind`` is stable, for programs.

    ``repair``: what puts it right, if that is surely right; ``branch`` and ``target`` (a file, or the branch itself) say where.
    """

    severity: Severity
    kind: str
    subject: str
    message: str
    fix: str
    repair: RepairKind | None = None
    branch: str = MAIN_BRANCH
    target: str = ""


@dataclass(frozen=True, slots=True)
class Findings:
    """The findings on one branch."""

    branch: str = MAIN_BRANCH
    all: list[Finding] = field(default_factory=list)

    def name(self, subject: str) -> str:
        """A thing of this branch, for people."""
        return subject if self.branch == MAIN_BRANCH else f"branch {self.branch}: {subject}"

    def problem(self, kind: str, subject: str, message: str, fix: str) -> None:
        """Note a fault that costs rows."""
        self._note("problem", kind, subject, message, fix)

    def warn(self, kind: str, subject: str, message: str, fix: str) -> None:
        """Note a fault that costs no rows."""
        self._note("warning", kind, subject, message, fix)

    def repairable(self, kind: str, subject: str, message: str, repair: RepairKind, *, target: str = "") -> None:
        """Note a fault that costs no rows and can be put right."""
        self._note("warning", kind, subject, message, REPAIR, repair=repair, target=target)

    @contextmanager
    def noting(self, kind: str, subject: str, fix: str) -> Iterator[None]:
        """An error of ours inside is a finding, not an error."""
        try:
            yield
        except TablestoreError as error:
            self.problem(kind, subject, error.message, fix)

    def _note(self, severity: Severity, kind: str, subject: str, message: str, fix: str, **repair: Any) -> None:
        subject = self.name(subject)
        self.all.append(
            Finding(severity=severity, kind=kind, subject=subject, message=message, fix=fix, branch=self.branch, **repair)
        )
