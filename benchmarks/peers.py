"""pypaimon as a process of its own: it pins another version of pyarrow, and its seconds are taken inside."""

import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType, TracebackType
from typing import IO, Any, Literal

import pyarrow as pa

from benchmarks.measure import Sample, WrongRows

Mode = Literal["pure", "native"]
_HERE = Path(__file__).resolve().parent
_SETUP = _HERE.parent / "tests" / "interop" / "setup_oracles.py"


class PeerUnavailable(Exception):
    """It is not here; the message says why."""


class PeerFailed(Exception):
    """pypaimon refused a command."""


def find_interpreter(name: Literal["pypaimon", "deltalake", "pyiceberg", "tpc"]) -> Path:
    """The interpreter that has another implementation, installed if it is not there yet. Raises PeerUnavailable."""
    setup = load_setup()
    try:
        return Path(setup.ensure_environment(name))
    except setup.SetupError as error:
        raise PeerUnavailable(str(error)) from error


def load_setup() -> ModuleType:
    """The module that installs other implementations. Raises PeerUnavailable."""
    if not _SETUP.exists():
        raise PeerUnavailable(f"{_SETUP.name} is not part of this checkout")
    spec = importlib.util.spec_from_file_location(_SETUP.stem, _SETUP)
    assert spec is not None and spec.loader is not None, "a file of this checkout"
    module = importlib.util.module_from_spec(spec)
    sys.modules[_SETUP.stem] = module
    spec.loader.exec_module(module)
    return module


class Peer:
    """One process of pypaimon, pure or native."""

    def __init__(self, python: Path, mode: Mode) -> None:
        self.mode = mode
        self.name = f"pypaimon {mode}"
        # A file, not a pipe: nobody reads along, and a full pipe would stop the process.
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [str(python), str(_HERE / "peer_worker.py"), mode],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self.versions: dict[str, str] = self._call("hello")

    def load(self, name: str, rows: pa.Table, directory: Path) -> None:
        """Hand over rows under a name."""
        path = directory / f"{name}-{self.mode}.arrow"
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
            writer.write_table(rows)
        self._call("load", name=name, path=str(path))
        path.unlink()

    def forget(self) -> None:
        """Let all rows go."""
        self._call("forget")

    def create(self, path: Path, name: str, *, primary_key: Sequence[str], options: Mapping[str, str]) -> None:
        """Create an empty table for the rows of this name."""
        self._call("create", path=str(path), name=name, primary_key=list(primary_key), options=dict(options))

    def write(self, path: Path, name: str) -> Sample:
        """Commit the rows of this name; the time that it took."""
        answer = self._call("write", path=str(path), name=name)
        return Sample(answer["wall"], answer["cpu"])

    def read(self, path: Path, expected: tuple[int, int]) -> Sample:
        """Read a table, compare its digest; the time that the read took."""
        answer = self._call("read", path=str(path))
        found = (answer["rows"], answer["sum"])
        if found != expected:
            raise WrongRows(f"{self.name}: expected rows and digest {expected} from {path.name}, found {found}")
        return Sample(answer["wall"], answer["cpu"])

    def plan(self, path: Path, question: str, count: int) -> Sample:
        """Plan a scan of a table, of so many files: ``all``, ``day=<ISO date>`` or ``id=<number>``; the time that it took."""
        answer = self._call("plan", path=str(path), question=question)
        if answer["files"] != count:
            raise WrongRows(f"{self.name}: expected a plan of {count} files, found {answer['files']}")
        return Sample(answer["wall"], answer["cpu"])

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._log.close()

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _call(self, command: str, **arguments: Any) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps({"command": command, **arguments}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            self._log.seek(0)
            raise PeerFailed(f"{self.name} died: {self._log.read().decode(errors='replace')[-2000:]}")
        answer = json.loads(line)
        if "error" in answer:
            raise PeerFailed(f"{self.name} refused {command!r}: {answer['error']}")
        return answer["ok"]
