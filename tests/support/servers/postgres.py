"""A PostgreSQL server of its own for the tests: real, on a free port of this machine, gone with them."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

FIX = "apt-get install postgresql (on Debian and Ubuntu), and pip install 'managed-tablestore[postgresql]'"
_USER = "tests"


class PostgresUnavailable(Exception):
    """There is no server here; the message says why."""


class PostgresServer:
    """A server between ``start`` and ``stop``; whoever may connect does so without a password."""

    def __init__(self) -> None:
        self._programs = _programs()
        # Not in pytest's folder, which other users cannot look into, and the server is one.
        self._folder = Path(tempfile.mkdtemp(prefix="tablestore-postgres-"))
        self._port = free_port()

    def make_database(self, name: str) -> str:
        """A new database; its URL."""
        self._run("createdb", "-h", "127.0.0.1", "-p", str(self._port), "-U", _USER, name)
        return f"postgresql://{_USER}@127.0.0.1:{self._port}/{name}"

    def start(self) -> None:
        if os.geteuid() == 0:
            self._hand_over()
        data = str(self._folder / "data")
        self._run("initdb", "-D", data, "-U", _USER, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
        settings = f"-p {self._port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off"
        self._run("pg_ctl", "-D", data, "-w", "-l", str(self._folder / "log"), "-o", settings, "start")

    def stop(self) -> None:
        """End it, and remove its files; connections break."""
        self._run("pg_ctl", "-D", str(self._folder / "data"), "-w", "-m", "immediate", "stop")
        shutil.rmtree(self._folder)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), *arguments]
        # The server refuses to run as root, and so does what makes its folder.
        if os.geteuid() == 0:
            command = ["runuser", "-u", "postgres", "--", *command]
        done = subprocess.run(
            command, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=120, check=False
        )
        if done.returncode:
            raise PostgresUnavailable(f"{program} failed: {done.stderr.decode(errors='replace').strip()[:1000]}")

    def _hand_over(self) -> None:
        try:
            owner = pwd.getpwnam("postgres")
        except KeyError:
            raise PostgresUnavailable("there is no user postgres here, and root cannot run the server") from None
        os.chown(self._folder, owner.pw_uid, owner.pw_gid)


def _programs() -> Path:
    """The folder with the server's programs, the newest one: Debian puts it on no path."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    if on_path := shutil.which("initdb"):
        return Path(on_path).resolve().parent
    raise PostgresUnavailable("there is no PostgreSQL server here")


def free_port() -> int:
    """A port of this machine that nobody listens at now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
