"""Processes that have too little of something: open files, memory, room in a file.

Whatever they are short of, each of their steps succeeds or says by an error of ours why not; afterwards what was acknowledged is
there, nothing that nobody tried to write, the table takes another row, and one clean leaves nothing.
"""

import json
from collections.abc import Iterator
from multiprocessing.connection import Connection
from random import Random
from typing import Any

from tablestore.testing.night.counts import Tally
from tablestore.testing.night.killed import TABLES, TIMEOUT_S, check_clean, make_table, processes, scratch_folder
from tablestore.testing.night.worker import work_with_little

_PROCESSES = 4


def live_exhausted(seed: int) -> Tally:
    """A table that processes work on with too little, one after the other."""
    kind = Random(seed).choice(list(TABLES))
    tally = Tally(lives=1)
    with scratch_folder() as folder:
        lab = make_table(folder / "table", kind)
        state: dict[int, str] = {}
        for number in range(seed * 10 + 1, seed * 10 + 1 + _PROCESSES):
            receiver, sender = processes().Pipe(duplex=False)
            process = processes().Process(target=work_with_little, args=(str(folder / "table"), sender, number))
            process.start()
            sender.close()
            notes = list(_received(receiver))
            process.join(TIMEOUT_S)
            code = process.exitcode
            assert code == 0, f"seed {number}: with too little a step ended with another error; exit code {code}"
            lab.open().compact()
            rows = lab.read()
            assert len(dict(rows)) == len(rows), f"seed {number}: rows were doubled"
            state = _followed(state, notes, dict(rows), f"seed {number}")
            tally.states += 1
            tally.faults["a process with too little"] += 1
            lab.write_new((-number, "others"))
            state[-number] = "others"
        lab.open().compact()
        check_clean(lab, folder / "table", list(state.items()))
    return tally


def _received(receiver: Connection) -> Iterator[dict[str, Any]]:
    """The notes that a process sends, until it ends."""
    with receiver:
        while True:
            try:
                yield json.loads(receiver.recv_bytes())
            except EOFError:
                return


def _followed(state: dict[int, str], notes: list[dict[str, Any]], rows: dict[int, str], where: str) -> dict[int, str]:
    """The rows of the table, if they follow from what was tried and what was heard of."""
    allowed: dict[int, set[str | None]] = {key: {value} for key, value in state.items()}
    for note in notes:
        for key, text, times in note["rows"]:
            value = text * times
            if note["tried"]:
                allowed.setdefault(key, {None}).add(value)
            else:
                allowed[key] = {value}
    wrong = {key for key in {*allowed, *rows} if rows.get(key) not in allowed.get(key, {None})}
    assert not wrong, f"{where}: rows were lost, or came that nobody wrote: {sorted(wrong)}"
    return rows
