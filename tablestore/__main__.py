"""Runs the command-line program ``tablestore`` as ``python -m tablestore``."""

import sys

from tablestore.cli.interruption import leave_at_ctrl_c
from tablestore.cli.standardstreams import open_closed_streams
from tablestore.lazy import imported


def main() -> None:
    """The entry point."""
    # Before anything else is imported.
    leave_at_ctrl_c()
    open_closed_streams()
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ModuleNotFoundError as error:
        sys.exit(f"error: the command needs the package {error.name}; run: pip install 'managed-tablestore[cli]'")
    imported("tablestore.cli.main:main")()


if __name__ == "__main__":
    main()
