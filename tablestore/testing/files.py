"""A file store that fails where a test says, and records its calls.

    faults = Faults()
    store = FaultyFileStore(LocalFileStore(tmp_path), faults)
    faults.fail_nth(3)                                          # the third call fails, before anything happens
    faults.fail_nth(1, when="after", op="publish_if_absent")    # applied, but reported as unknown
    faults.before(lambda call: barrier.wait(), op="delete")     # pause, or let another actor run
    late = faults.capture_publish()                             # reported unknown now, applied when the test says
    late = faults.capture(op="delete")                          # the same for any verb that changes the store
    faults.crash_nth(7)                                         # the process dies: no later call does anything

Calls are the verbs of :class:`~tablestore.io.filestore.FileStore`, and besides them ``output.write`` and
``output.close`` for each write and the end of an ``open_output``, and ``input.read`` for each read of an
``open_input``. They are numbered from 1 in the order in which they come in, over a store and all that ``at``
made from it, and their paths count from the store that was wrapped first.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import RLock
from typing import Any, BinaryIO, Literal, TypeVar

from tablestore.errors import StorageError
from tablestore.io.filestore import READ_LIMIT_BYTES, FileInfo, FileStore, join_directory, join_inside

T = TypeVar("T")
When = Literal["before", "after"]
CAPTURED = frozenset({"delete", "delete_directory", "overwrite", "publish_if_absent", "write"})
"""The verbs that may arrive late."""


@dataclass(frozen=True, slots=True)
class FileCall:
    """One call of the wrapped store."""

    op: str
    path: str
    number: int


class SimulatedCrash(BaseException):
    """The process is gone. Not an Exception: no handler for errors may run as if it were alive."""


@dataclass
class CapturedCall:
    """A call that the store reported as failed (a publish: as unknown) and did not apply; the test applies it, or never does."""

    op: str = "publish_if_absent"
    path: str = ""
    data: bytes = b""
    captured: bool = False
    _run: Callable[[], Any] | None = None

    def apply(self) -> Any:
        """Let it arrive now; what the call would have returned."""
        assert self._run is not None, "nothing was called since the capture was set up"
        return self._run()

    def hold(self, call: "FileCall", data: bytes, run: Callable[[], Any]) -> None:
        """Keep a call instead of making it."""
        self.path, self.data, self.captured, self._run = call.path, data, True, run


Hook = Callable[[FileCall], object]


@dataclass
class _Rule:
    when: When
    op: str | None
    run: Hook

    def meets(self, call: FileCall, when: When) -> bool:
        return self.when == when and self.op in (None, call.op)


@dataclass
class Faults:
    """The actions at chosen calls, and the counts of what happened; shared by a store and those made from it."""

    calls: list[FileCall] = field(default_factory=list)
    injected: Counter[str] = field(default_factory=Counter)
    open_handles: int = 0
    crashed: bool = False
    _rules: list[_Rule] = field(default_factory=list)
    _captures: list[CapturedCall] = field(default_factory=list)
    _lock: RLock = field(default_factory=RLock)

    @property
    def injected_total(self) -> int:
        """The number of faults that really happened."""
        return self.injected.total()

    def before(self, hook: Hook, *, op: str | None = None) -> None:
        """Run ``hook(call)`` before each call (of that ``op``); what it raises, the caller gets."""
        self._rules.append(_Rule("before", op, hook))

    def after(self, hook: Hook, *, op: str | None = None) -> None:
        """Run ``hook(call)`` after each call that was applied; what it raises, the caller gets instead."""
        self._rules.append(_Rule("after", op, hook))

    def fail_nth(
        self,
        n: int,
        *,
        when: When = "before",
        op: str | None = None,
        error: Callable[[str], BaseException] | None = None,
    ) -> None:
        """Fail the ``n``-th matching call from now on (1 is the next), once; ``error`` makes it from a message."""
        seen = 0

        def hook(call: FileCall) -> None:
            nonlocal seen
            with self._lock:
                seen += 1
                due = seen == n
            if due:
                self._inject(call, when, error)

        self._rules.append(_Rule(when, op, hook))

    def fail_randomly(self, rate: float, *, seed: int, op: str | None = None, after_share: float = 0.5) -> None:
        """Fail each matching call with probability ``rate``; ``after_share`` of the faults strike once applied."""
        chance = random.Random(seed)

        def hook(when: When, share: float) -> Hook:
            def strike(call: FileCall) -> None:
                with self._lock:
                    due = chance.random() < rate * share
                if due:
                    self._inject(call, when, None)

            return strike

        self._rules.append(_Rule("before", op, hook("before", 1 - after_share)))
        self._rules.append(_Rule("after", op, hook("after", after_share)))

    def crash_nth(self, n: int, *, when: When = "before", op: str | None = None) -> None:
        """Die at the ``n``-th matching call from now on: :class:`SimulatedCrash` there and at every later call."""

        def crash(message: str) -> BaseException:
            self.crashed = True
            return SimulatedCrash(message)

        self.fail_nth(n, when=when, op=op, error=crash)

    def capture_publish(self) -> CapturedCall:
        """Withhold the next publish: its caller is told "unknown", and it lands when ``apply()`` is called."""
        return self.capture(op="publish_if_absent")

    def capture(self, *, op: str) -> CapturedCall:
        """Withhold the next call of that ``op`` (one of :data:`CAPTURED`): its caller is told that it failed, and it is made when
        ``apply()`` is called."""
        assert op in CAPTURED, f"{op} changes nothing, or not in one step"
        capture = CapturedCall(op)
        self._captures.append(capture)
        return capture

    def clear(self) -> None:
        """Forget all rules; the counts stay."""
        self._rules.clear()
        self._captures.clear()

    # ---- for FaultyFileStore

    def begin(self, op: str, path: str) -> FileCall:
        """Note a call and run what comes before it."""
        if self.crashed:
            raise SimulatedCrash(f"{op} {path} after the crash")
        with self._lock:
            call = FileCall(op, path, len(self.calls) + 1)
            self.calls.append(call)
        self._run(call, "before")
        return call

    def end(self, call: FileCall) -> None:
        """Run what comes after a call that was applied."""
        if self.crashed:
            raise SimulatedCrash(f"{call.op} {call.path} after the crash")
        self._run(call, "after")

    def withholds(self, call: FileCall, data: bytes, run: Callable[[], Any]) -> bool:
        """True if a capture waits for such a call; the oldest one has it now."""
        with self._lock:
            capture = next((capture for capture in self._captures if capture.op == call.op), None)
            if capture is None:
                return False
            self._captures.remove(capture)
        capture.hold(call, data, run)
        self.count_fault(call, "captured")
        return True

    def count_handle(self, change: int) -> None:
        """Note that a file was opened (1) or closed (-1)."""
        with self._lock:
            self.open_handles += change

    def count_fault(self, call: FileCall, when: str) -> None:
        """Note that a fault struck."""
        with self._lock:
            self.injected[f"{call.op} {when}"] += 1

    def _run(self, call: FileCall, when: When) -> None:
        for rule in tuple(self._rules):
            if rule.meets(call, when):
                rule.run(call)

    def _inject(self, call: FileCall, when: When, error: Callable[[str], BaseException] | None) -> None:
        self.count_fault(call, when)
        message = f"injected fault {when} call {call.number}: {call.op} {call.path}"
        raise error(message) if error is not None else _default_error(call, message)


def _default_error(call: FileCall, message: str) -> StorageError:
    # A publish that fails in an unclear way is "unknown" to its caller, whether it was applied or not.
    kind = "unknown-outcome" if call.op == "publish_if_absent" else None
    return StorageError(f"{message}; expected it, this is a test", kind=kind)


class FaultyFileStore:
    """``inner`` with faults; see the module."""

    def __init__(self, inner: FileStore, faults: Faults | None = None, *, _prefix: str = "") -> None:
        self.inner = inner
        self.faults = faults if faults is not None else Faults()
        self._prefix = _prefix

    @property
    def root_uri(self) -> str:
        return self.inner.root_uri

    @property
    def can_publish(self) -> bool:
        return self.inner.can_publish

    def at(self, path: str) -> "FaultyFileStore":
        return FaultyFileStore(self.inner.at(path), self.faults, _prefix=self._path(path))

    def read(self, path: str, *, max_bytes: int = READ_LIMIT_BYTES) -> bytes:
        return self._do("read", path, lambda: self.inner.read(path, max_bytes=max_bytes))

    def size(self, path: str) -> int:
        return self._do("size", path, lambda: self.inner.size(path))

    def exists(self, path: str) -> bool:
        return self._do("exists", path, lambda: self.inner.exists(path))

    def list(self, directory: str, prefix: str = "") -> Sequence[FileInfo]:
        return self._do("list", directory, lambda: self.inner.list(directory, prefix))

    def names(self, directory: str, prefix: str = "") -> Sequence[str]:
        # To a test a listing is a listing.
        return self._do("list", directory, lambda: self.inner.names(directory, prefix))

    def write(self, path: str, data: bytes) -> None:
        self._do("write", path, lambda: self.inner.write(path, data), data)

    def write_all(self, files: Mapping[str, bytes]) -> None:
        # One after the other, so that a test can tell which comes when.
        for path, data in files.items():
            self.write(path, data)

    def publish_if_absent(self, path: str, data: bytes) -> bool:
        def publish() -> bool:
            return self.inner.publish_if_absent(path, data)

        return self._do("publish_if_absent", path, publish, data)

    def overwrite(self, path: str, data: bytes, *, lasting: bool = True) -> None:
        self._do("overwrite", path, lambda: self.inner.overwrite(path, data, lasting=lasting), data)

    def delete(self, path: str) -> bool:
        return self._do("delete", path, lambda: self.inner.delete(path))

    def delete_directory(self, path: str) -> None:
        self._do("delete_directory", path, lambda: self.inner.delete_directory(path))

    def sync(self, directory: str) -> None:
        self._do("sync", directory, lambda: self.inner.sync(directory))

    def open_input(self, path: str) -> BinaryIO:
        call = self.faults.begin("open_input", self._path(path))
        source = self.inner.open_input(path)
        try:
            self.faults.end(call)
        except BaseException:
            source.close()
            raise
        return _FaultyInput(source, call.path, self.faults)  # type: ignore[return-value]

    @contextmanager
    def open_output(self, path: str) -> Iterator[BinaryIO]:
        call = self.faults.begin("open_output", self._path(path))
        output = self.inner.open_output(path)
        file = output.__enter__()
        self.faults.count_handle(1)
        try:
            try:
                self.faults.end(call)
                yield _FaultyOutput(file, call.path, self.faults)  # type: ignore[misc]
                closing = self.faults.begin("output.close", call.path)
            except SimulatedCrash:
                output.__exit__(None, None, None)  # a dead process removes nothing: what was written stays
                raise
            except BaseException as error:
                if not output.__exit__(type(error), error, error.__traceback__):
                    raise
                return
            output.__exit__(None, None, None)
            self.faults.end(closing)
        finally:
            self.faults.count_handle(-1)

    def _do(self, op: str, path: str, run: Callable[[], T], data: bytes = b"") -> T:
        call = self.faults.begin(op, self._path(path))
        if self.faults.withholds(call, data, run):
            raise _default_error(call, f"injected delay of call {call.number}: {call.op} {call.path}")
        result = run()
        self.faults.end(call)
        return result

    def _path(self, path: str) -> str:
        if not self._prefix:
            return path
        return join_inside(self._prefix, path) if path else join_directory(self._prefix, "")


_PASSED_ON = frozenset({"closed", "flush", "readable", "seek", "seekable", "size", "tell", "writable"})


class _Wrapped:
    """A file that passes on what moves no bytes. All else is missing, or pyarrow would read past the faults."""

    def __init__(self, file: Any, path: str, faults: Faults) -> None:
        self._file = file
        self._path = path
        self._faults = faults

    def __getattr__(self, name: str) -> Any:
        if name not in _PASSED_ON:
            raise AttributeError(name)
        return getattr(self._file, name)


class _FaultyOutput(_Wrapped):
    def write(self, data: Any) -> int:
        call = self._faults.begin("output.write", self._path)
        written = self._file.write(data)
        self._faults.end(call)
        return int(written)

    def close(self) -> None:
        self._file.close()


class _FaultyInput(_Wrapped):
    def __init__(self, file: Any, path: str, faults: Faults) -> None:
        super().__init__(file, path, faults)
        self._counted = True
        faults.count_handle(1)

    def read(self, size: int = -1) -> bytes:
        call = self._faults.begin("input.read", self._path)
        data: bytes = self._file.read() if size is None or size < 0 else self._file.read(size)
        self._faults.end(call)
        return data

    def close(self) -> None:
        if self._counted:
            self._counted = False
            self._faults.count_handle(-1)
        self._file.close()

    def __enter__(self) -> "_FaultyInput":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
