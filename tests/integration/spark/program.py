"""Runs a program of the folder ``programs`` in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"


def start(program: str, folder: Path, *arguments: str, python: Path | None = None, **env: str) -> "subprocess.Popen[str]":
    """Begin a program; what it says is kept. ``python``: an environment that has everything, in place of this one."""
    inherited = {name: value for name, value in os.environ.items() if python is None or name != "PYTHONPATH"}
    executable = sys.executable if python is None else str(python / "bin" / "python")
    return subprocess.Popen(
        [executable, str(PROGRAMS / program), str(folder), *arguments],
        cwd=folder,
        env={**inherited, "PYSPARK_PYTHON": executable, "SPARK_LOCAL_IP": "127.0.0.1", **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(program: str, folder: Path, *arguments: str, ends: int = 0, python: Path | None = None, **env: str) -> None:
    """Run a program to its end, which must be this one."""
    process = start(program, folder, *arguments, python=python, **env)
    _, said = process.communicate(timeout=600)
    assert process.returncode == ends, said[-12000:]
