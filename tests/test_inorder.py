"""Results and items of streams come in order, whichever thread is done first, and few are taken ahead."""

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from threading import Barrier, Event

import pytest

from tablestore.inorder import in_order, one_after_another


def test_results_have_the_order_of_the_items_although_the_later_one_is_done_first() -> None:
    second_is_done = Event()

    def work(item: int) -> int:
        if item == 1:
            assert second_is_done.wait(20)
        if item == 2:
            second_is_done.set()
        return item * 10

    assert list(in_order(work, [1, 2, 3], threads=2)) == [10, 20, 30]


def test_two_items_are_worked_on_at_once() -> None:
    both = Barrier(2)
    assert len(list(in_order(lambda _: both.wait(20), range(2), threads=2))) == 2


def test_no_more_items_are_taken_than_one_ahead_of_the_threads() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for item in range(10):
            taken.append(item)
            yield item

    results = in_order(lambda item: item, items(), threads=2)
    assert next(results) == 0
    assert taken == [0, 1, 2]
    assert list(results) == [*range(1, 10)]


def test_an_error_comes_where_its_result_would() -> None:
    def work(item: int) -> int:
        if item == 1:
            raise ValueError("one")
        return item

    results = in_order(work, range(3), threads=2)
    assert next(results) == 0
    with pytest.raises(ValueError, match="one"):
        next(results)


def test_items_that_nobody_waits_for_any_more_are_left_alone() -> None:
    goes_on, worked_on = Event(), []

    def work(item: int) -> int:
        worked_on.append(item)
        if item:
            assert goes_on.wait(20)
        return item

    results = in_order(work, range(100), threads=1)
    assert next(results) == 0
    goes_on.set()
    results.close()  # type: ignore[attr-defined]
    assert max(worked_on) <= 2


def test_streams_come_one_after_the_other_although_the_second_is_read_first() -> None:
    second_is_read = Event()

    def first() -> Iterator[int]:
        assert second_is_read.wait(20)
        yield from (1, 2)

    def second() -> Iterator[int]:
        yield 3
        second_is_read.set()

    assert list(one_after_another([first, second], threads=2, ahead=2)) == [1, 2, 3]


def test_no_more_items_of_a_stream_are_read_ahead_than_allowed() -> None:
    read: list[int] = []
    closed = Event()

    def stream() -> Iterator[int]:
        try:
            for item in range(100):
                read.append(item)
                yield item
        finally:
            closed.set()

    items = one_after_another([stream], threads=2, ahead=2)
    assert next(items) == 0
    items.close()
    # One was taken, two wait and their end has a place too; one more may wait for room.
    assert closed.is_set()
    assert len(read) <= 5


def test_an_error_of_a_stream_comes_behind_its_items_and_closes_the_others() -> None:
    closed = Event()

    def failing() -> Iterator[int]:
        yield 1
        raise ValueError("one")

    def endless() -> Iterator[int]:
        try:
            while True:
                yield 2
        finally:
            closed.set()

    items = one_after_another([failing, endless], threads=2, ahead=1)
    assert next(items) == 1
    with pytest.raises(ValueError, match="one"):
        next(items)
    assert closed.is_set()


def test_no_stream_is_begun_before_it_is_its_turn() -> None:
    begun: list[int] = []

    def stream(number: int) -> Iterator[int]:
        begun.append(number)
        yield number

    items = one_after_another([partial(stream, number) for number in range(10)], threads=2, ahead=1)
    assert next(items) == 0
    items.close()
    assert set(begun) <= {0, 1}


def test_a_program_ends_although_nobody_takes_what_is_read_ahead() -> None:
    program = """
from tablestore.inorder import one_after_another
items = one_after_another([lambda: iter(range(10**9))] * 3, threads=2, ahead=1)
print(next(items))
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout == "0\n"
