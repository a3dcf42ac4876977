"""Values that are computed when they are first asked for."""

import threading

from tablestore.lazy import lazy


class Slow:
    def __init__(self, go_on: threading.Event) -> None:
        self._go_on, self.begun, self.computed = go_on, threading.Event(), 0

    @lazy
    def value(self) -> int:
        """What it is."""
        self.computed += 1
        self.begun.set()
        assert self._go_on.wait(60)
        return 7


def test_a_value_is_computed_once() -> None:
    go_on = threading.Event()
    go_on.set()
    slow = Slow(go_on)
    assert (slow.value, slow.value, slow.computed) == (7, 7, 1)
    assert Slow.value.__doc__ == "What it is."


def test_one_object_does_not_wait_for_the_value_of_another() -> None:
    never, at_once = threading.Event(), threading.Event()
    at_once.set()
    waiting, quick = Slow(never), Slow(at_once)
    thread = threading.Thread(target=lambda: waiting.value)
    thread.start()
    assert waiting.begun.wait(60)
    other = threading.Thread(target=lambda: quick.value)
    other.start()
    other.join(60)
    assert not other.is_alive()
    never.set()
    thread.join(60)
    assert waiting.computed == quick.computed == 1
