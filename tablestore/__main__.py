"""Runs the command-line program ``tablestore`` as ``python -m tablestore``."""

from tablestore.cli.interruption import leave_at_ctrl_c
from tablestore.cli.standardstreams import open_closed_streams
from tablestore.lazy import imported


def main() -> None:
    """The entry point."""
    # Before anything else is imported.
    leave_at_ctrl_c()
    open_closed_streams()
    imported("tablestore.cli.main:main")()


if __name__ == "__main__":
    main()
