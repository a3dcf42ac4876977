"""``tablestore`` in a process that kills itself with SIGKILL at a call of the file system; 0: it says how many it has made.

python dying.py 120 mt refresh --due
"""

import os
import signal
import sys

CALLS = ("open", "os.listdir", "os.scandir", "os.link", "os.rename", "os.remove", "os.mkdir", "os.rmdir")


def main() -> None:
    """Run the command of the arguments behind the number."""
    dies_at, warehouse = int(sys.argv.pop(1)), os.path.realpath(os.environ["TABLESTORE_WAREHOUSE"])
    made = 0

    def count(event: str, given: tuple[object, ...]) -> None:
        nonlocal made
        if event in CALLS and given and isinstance(given[0], str) and given[0].startswith(warehouse):
            made += 1
            if made == dies_at:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    from tablestore.cli.main import main as run

    try:
        run()
    finally:
        if not dies_at:
            sys.stderr.write(f"{made}\n")


if __name__ == "__main__":
    main()
