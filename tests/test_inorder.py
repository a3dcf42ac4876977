"""Results come in the order of their items, whichever thread is done first, and few items are taken ahead."""

from collections.abc import Iterator
from threading import Barrier, Event

import pytest

from tablestore.inorder import in_order


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
