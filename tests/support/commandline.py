"""The command line run inside of this process: what it printed, and what it returned."""

import json
from dataclasses import dataclass
from typing import Any

from typer.testing import CliRunner

from tablestore.cli import main


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One run of the command."""

    code: int
    out: str
    err: str
    raw: bytes

    @property
    def json(self) -> Any:
        """The one JSON document on standard output."""
        return json.loads(self.out)

    @property
    def rows(self) -> list[Any]:
        """The JSON lines on standard output."""
        return [json.loads(line) for line in self.out.splitlines()]


def run_command(*args: object, code: int = 0, input: bytes | None = None) -> Ran:
    """Run ``tablestore`` with these arguments; AssertionError with all that it printed if it does not return ``code``."""
    result = CliRunner().invoke(main.program_app(), [str(arg) for arg in args], input=input)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, f"{args} returned {result.exit_code}, not {code}:\n{result.stdout}\n{result.stderr}"
    return Ran(code=result.exit_code, out=result.stdout, err=result.stderr, raw=result.stdout_bytes)
