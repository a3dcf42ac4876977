"""Runs the command-line program ``tablestore`` as ``python -m tablestore``."""

import sys
from importlib import import_module

from tablestore.cli.interruption import leave_at_ctrl_c
from tablestore.cli.standardstreams import open_closed_streams
from tablestore.lazy import imported


def main() -> None:
    """The entry point."""
    # Before anything else is imported.
    leave_at_ctrl_c()
    open_closed_streams()
    for package in ("typer", "rich"):
        try:
            import_module(package)
        except ModuleNotFoundError:
            sys.exit(f"error: the command needs the package {package}; run: pip install 'managed-tablestore[cli]'")
    imported("tablestore.cli.main:main")()


if __name__ == "__main__":
    main()
