"""Applies a function to items in a few threads, and gives the results in the order of the items.

For work that Arrow, numpy or a file system does, which threads of one process do side by side.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def in_order(function: Callable[[T], R], items: Iterable[T], *, threads: int) -> Iterator[R]:
    """The result of ``function`` for each item. The caller's thread takes the items, one more than there are ``threads`` ahead of
    what it has got the result of. An error comes where its result would."""
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[R]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
