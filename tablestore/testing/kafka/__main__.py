"""``python -m tablestore.testing.kafka COMMAND …``: start a broker, run the command, stop the broker.

The command finds the broker in the environment variable ``KAFKA_SERVERS``. Without a command the broker runs until Ctrl-C.
"""

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from rich.console import Console

from tablestore.testing.kafka.artefacts import KAFKA_VERSION, BrokerUnavailable, ensure_jars
from tablestore.testing.kafka.broker import KafkaBroker

SERVERS_VARIABLE = "KAFKA_SERVERS"


def main(command: list[str]) -> int:
    """The command's exit code; 2 if no broker can be had."""
    console = Console(stderr=True)
    try:
        with console.status(f"starting Kafka {KAFKA_VERSION} (the first time its jars are fetched)"):
            jars = ensure_jars()
        with tempfile.TemporaryDirectory(prefix="tablestore-kafka-") as directory, KafkaBroker(jars, Path(directory)) as broker:
            console.print(f"Kafka {KAFKA_VERSION} listens on {broker.servers}", highlight=False)
            if not command:
                return _wait_for_interrupt()
            return subprocess.run(command, env={**os.environ, SERVERS_VARIABLE: broker.servers}, check=False).returncode
    except BrokerUnavailable as error:
        console.print(str(error), highlight=False, markup=False)
        return 2


def _wait_for_interrupt() -> int:
    with suppress(KeyboardInterrupt):
        signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
