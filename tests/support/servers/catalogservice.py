"""``tablestore serve`` as a process, which can be killed and started again at its address."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path


class CatalogService:
    """The service of one warehouse. A context manager; it ends by SIGTERM."""

    def __init__(self, warehouse: Path, *options: str, name: str = "wh") -> None:
        self.warehouse, self.name, self._options = warehouse, name, options
        self._port = 0
        self._process: subprocess.Popen[str] | None = None
        self.address = ""
        self._errors: list[str] = []
        self.is_up = threading.Event()

    def __enter__(self) -> "CatalogService":
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.end()

    @property
    def client_options(self) -> dict[str, str]:
        """The options of a client's catalog."""
        return {
            "metastore": "rest",
            "uri": self.address,
            "warehouse": self.name,
            "token.provider": "bear",
            "token": "none",
        }

    def start(self) -> None:
        """Starts it, at the port of the last time; returns once it listens."""
        command: Sequence[str] = [
            sys.executable, "-m", "tablestore", "serve", "--warehouse", str(self.warehouse), "--name", self.name, "--json",
            "--port", str(self._port), *self._options,
        ]  # fmt: skip
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise AssertionError(f"the service did not start: {self._process.communicate()[1]}")
        self.address = str(json.loads(line)["address"])
        self._port = int(self.address.rpartition(":")[2])
        self._errors = []
        self._reader = threading.Thread(target=self._drain, args=(self._process,), daemon=True)
        self._reader.start()
        self.is_up.set()

    def kill(self) -> None:
        """Ends it at once, as a crash does."""
        assert self._process is not None
        self.is_up.clear()
        self._process.kill()
        self._process.wait(timeout=60)
        self._close()

    def end(self) -> int:
        """Ends it gracefully; its exit code."""
        if self._process is None:
            return 0
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(timeout=120)
        self._close()
        return code

    @property
    def log(self) -> str:
        """What it has logged since it was started."""
        return "".join(self._errors)

    def _drain(self, process: "subprocess.Popen[str]") -> None:
        assert process.stderr is not None
        with process.stderr:
            self._errors.extend(process.stderr)

    def _close(self) -> None:
        assert self._process is not None
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._reader.join(60)
        self._process = None
