"""Applies a function to items, or reads streams, in a few threads, and gives the results in the order of the items or streams.

For work that Arrow, numpy or a file system does, which threads of one process do side by side.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Full, Queue
from threading import Event, Thread, main_thread
from typing import Generic, TypeVar

import pyarrow as pa

from tablestore.options import MIB

T = TypeVar("T")
R = TypeVar("R")

# Less is done before threads have begun.
_LEAST_BYTES = 8 * MIB
_MOST_THREADS = 4
# A thread that waits for room looks whether the program has ended this often.
_PATIENCE_SECONDS = 0.2


def threads_for(size_bytes: int) -> int:
    """The number of threads that work on so many bytes of rows is worth: 1 for little, else as many as Arrow has, up to 4."""
    return 1 if size_bytes < _LEAST_BYTES else min(pa.cpu_count(), _MOST_THREADS)


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


def one_after_another(streams: Iterable[Callable[[], Iterator[T]]], *, threads: int, ahead: int) -> Generator[T, None, None]:
    """The items of all streams, those of the first stream first. Each of ``threads`` reads a stream, and of it at most ``ahead``
    items that were not taken yet. An error comes where its item would; who stops taking closes the streams."""
    stopped = Event()
    waiting: deque[_Ahead[T]] = deque()
    try:
        for stream in streams:
            waiting.append(_Ahead(stream, ahead, stopped))
            if len(waiting) == threads:
                yield from waiting[0].items()
                waiting.popleft()
        while waiting:
            yield from waiting[0].items()
            waiting.popleft()
    finally:
        stopped.set()
        for one in waiting:
            one.wait()


class _Ahead(Generic[T]):
    """Reads one stream in a thread, ahead of who takes its items.

    A thread that waits for room ends with the program: a pool's would be waited for, also where nobody takes items any more.
    """

    def __init__(self, stream: Callable[[], Iterator[T]], most: int, stopped: Event) -> None:
        # The end of the stream goes in too, and its error.
        self._queue: Queue[T | _End] = Queue(most + 1)
        self._stopped = stopped
        self._thread = Thread(target=self._read, args=(stream,), name="read-ahead")
        self._thread.start()

    def items(self) -> Iterator[T]:
        """Takes the items. Raises what the stream did."""
        while not isinstance(item := self._queue.get(), _End):
            yield item
        if item.error is not None:
            raise item.error

    def wait(self) -> None:
        """Waits until the thread has closed its stream, which was stopped or has ended."""
        self._thread.join()

    def _read(self, stream: Callable[[], Iterator[T]]) -> None:
        error: BaseException | None = None
        try:
            items = stream()
            try:
                while not self._stopped.is_set():
                    self._put(next(items))
            except StopIteration:
                pass
            finally:
                if isinstance(items, Generator):
                    items.close()
        except BaseException as raised:
            error = raised
        self._put(_End(error))

    def _put(self, item: "T | _End") -> None:
        while not self._stopped.is_set():
            try:
                return self._queue.put(item, timeout=_PATIENCE_SECONDS)
            except Full:
                if not main_thread().is_alive():
                    self._stopped.set()


class _End:
    """Stands behind the last item of a stream."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error
