"""Ctrl-C ends the statement that runs, and nothing else.

A statement runs in a thread of its own; the main thread waits and gets the signals. At the first Ctrl-C it asks the engine to
cancel, and goes on waiting: what a statement has landed is only known when it has ended.
"""

import signal
from collections.abc import Callable
from threading import Thread
from typing import TypeVar

T = TypeVar("T")

# Short enough that a signal is seen at once.
_LOOK_S = 0.1


class Interrupted(Exception):
    """The statement was cancelled."""


def run_interruptibly(work: Callable[[], T], cancel: Callable[[], None]) -> T:
    """The result of ``work``. Ctrl-C calls ``cancel``, once for each time it is pressed. Only for the main thread.

    Raises what ``work`` raises; Interrupted instead if it was cancelled and failed.
    """
    results: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            failed.append(error)

    pressed: list[None] = []

    def interrupted(*_: object) -> None:
        pressed.append(None)
        cancel()

    # A daemon: a statement that no engine can end does not keep the program alive.
    thread = Thread(target=run, name="statement", daemon=True)
    # A handler, and no KeyboardInterrupt, which may be raised between any two lines.
    before = signal.signal(signal.SIGINT, interrupted)
    try:
        thread.start()
        while thread.is_alive():
            thread.join(_LOOK_S)
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        if failed and pressed:
            raise Interrupted from failed[0]
        if failed:
            raise failed[0]
        return results[0]
    finally:
        # The error leads to this frame: it would keep all that the statement held, an engine's rows too, to the end of the program.
        failed.clear()
