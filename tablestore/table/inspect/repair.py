"""Repairs the damage of a table that can be put right without losing anything.

    check_table -> findings -> plan_repairs -> do_repair
                                             finish-expiry   what an intent says, as the next expiry would
                                             remove-intent   one that cannot be understood, on which nobody acts
                                             remove-branch   the rest of a branch that holds nothing of its own
                                             write-hints     LATEST and EARLIEST, from a listing; never back over a lost snapshot

Only what the table's own upkeep does after a crash, done now. Planning is pure. Each step looks again whether it is still due, so
one that another process has done meanwhile changes nothing. No file that a snapshot, tag or branch names is removed.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import get_args

from tablestore.format.paths import MAIN_BRANCH
from tablestore.store.context import TableContext
from tablestore.store.history.branches import branch_exists, delete_branch
from tablestore.store.history.branchfiles import open_branch
from tablestore.store.history.expiryintents import damaged_intents
from tablestore.store.history.references import branch_directories
from tablestore.store.history.storeclock import check_clock
from tablestore.store.history.unfinishedbranches import is_given_up
from tablestore.table.inspect.findings import Finding, RepairKind
from tablestore.table.upkeep.expiry import finish_begun

_SENTENCES: dict[RepairKind, str] = {
    "finish-expiry": "finish the expiries that have begun",
    "remove-intent": "remove {target}, which cannot be understood",
    "remove-branch": "remove what is left of branch {target}",
    "write-hints": "write the hints LATEST and EARLIEST anew",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """One step. ``branch`` is the one that it works on, ``target`` a file of it, or a branch to be removed."""

    kind: RepairKind
    branch: str
    target: str = ""

    def __str__(self) -> str:
        """The action, for people."""
        return _SENTENCES[self.kind].format(target=self.target) + ("" if self.branch == MAIN_BRANCH else f" (branch {self.branch})")


def plan_repairs(findings: Iterable[Finding]) -> tuple[Repair, ...]:
    """The repairs of findings, each step once and in order; what no step puts right is left out."""
    steps = {
        # One step does it for all hints, or all intents, of a branch.
        Repair(
            kind=finding.repair,
            branch=finding.branch,
            target=finding.target if finding.repair in ("remove-intent", "remove-branch") else "",
        )
        for finding in findings
        if finding.repair is not None
    }
    order = get_args(RepairKind)
    return tuple(sorted(steps, key=lambda step: (order.index(step.kind), step.branch, step.target)))


def do_repair(context: TableContext, repair: Repair) -> None:
    """Runs one step. Raises StorageError (kind ``clock-skew``, where ages decide), and what the store raises."""
    opened = open_branch(context.main_files, repair.branch, clock=context.clock, ids=context.ids)
    if repair.kind == "finish-expiry":
        finish_begun(opened)
    elif repair.kind == "write-hints":
        opened.snapshots.write_hints_anew()
    elif repair.kind == "remove-branch":
        _remove_branch(opened, repair.target)
    elif repair.target in damaged_intents(opened.files):
        opened.files.delete(repair.target)


def _remove_branch(main: TableContext, name: str) -> None:
    older_than = check_clock(main.files, main.clock, main.ids) - round(main.settings.orphan_age_s * 1000)
    half = name in branch_directories(main.files) and not branch_exists(main.files, name)
    if half and is_given_up(main.files, name, older_than):
        delete_branch(main, name)
