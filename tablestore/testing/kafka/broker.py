"""One Kafka broker (KRaft, broker and controller in one process) on free loopback ports.

    with KafkaBroker(jars, directory) as broker:
        broker.servers                   "127.0.0.1:40123"
        broker.kill(); broker.start()    SIGKILL and back, with the same data and ports
        broker.pause(); broker.resume()  SIGSTOP and SIGCONT

The settings are those of a laptop: one replica, short sessions so that a restart after a kill takes seconds, transactions that
time out on time. A class-data archive, made once per set of jars, halves the start.
"""

import base64
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from filelock import FileLock

from tablestore.clock import Clock, SystemClock
from tablestore.ids import Ids, SystemIds
from tablestore.testing.kafka.artefacts import BrokerUnavailable, java_command

START_LIMIT_S = 60.0
_POLL_S = 0.02
_STOP_LIMIT_S = 20.0
_JVM = ("-Xms256m", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_LOGGING = """Configuration:
  status: ERROR
  Appenders:
    Console: {name: STDOUT, target: SYSTEM_OUT, PatternLayout: {pattern: "[%d] %p %m (%c)%n"}}
  Loggers:
    Root: {level: WARN, AppenderRef: [{ref: STDOUT}]}
"""
_SETTINGS: Mapping[str, str] = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "inter.broker.listener.name": "PLAINTEXT",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "auto.create.topics.enable": "false",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "num.network.threads": "2",
    "num.io.threads": "2",
    "background.threads": "2",
    # A broker that was killed waits for its own old session when it starts again.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    # Else a transaction that has timed out is noticed up to ten seconds late.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}


class KafkaBroker:
    """A broker process; a context manager. ``directory`` holds its data, settings and output."""

    def __init__(
        self,
        jars: Path,
        directory: Path,
        *,
        settings: Mapping[str, str] | None = None,
        clock: Clock | None = None,
        ids: Ids | None = None,
    ) -> None:
        self._jars, self._directory = jars, directory
        self._clock, self._ids = clock or SystemClock(), ids or SystemIds()
        self._extra = dict(settings or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._port, self._controller_port = _free_ports(2)

    @property
    def servers(self) -> str:
        """The address that clients put into ``bootstrap.servers``."""
        return f"127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        """The process, while it runs."""
        assert self._process is not None, "the broker was not started"
        return self._process.pid

    @property
    def output(self) -> str:
        """The lines that the broker has printed: warnings and errors."""
        log = self._directory / "output.log"
        return log.read_text(errors="replace") if log.is_file() else ""

    def __enter__(self) -> "KafkaBroker":
        self._prepare()
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def start(self) -> None:
        """Start and wait until it answers. Raises :class:`BrokerUnavailable` with what it printed."""
        archive = self._jars.parent / "classes.jsa"
        sharing = [f"-XX:SharedArchiveFile={archive}"] if archive.is_file() else []
        with (self._directory / "output.log").open("ab") as output:
            self._process = subprocess.Popen(
                [*self._java(_JVM), *sharing, *self._classpath(), "kafka.Kafka", str(self._config)],
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )
        self._wait_until_it_answers()

    def stop(self) -> None:
        """End it in an orderly way (SIGTERM), or by force if that takes too long."""
        process = self._process
        if process is None:
            return
        process.send_signal(signal.SIGCONT)
        process.terminate()
        try:
            process.wait(timeout=_STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._process = None

    def kill(self) -> None:
        """SIGKILL; :meth:`start` brings it back with its data."""
        assert self._process is not None, "the broker was not started"
        self._process.kill()
        self._process.wait()
        self._process = None

    def pause(self) -> None:
        """SIGSTOP: connections stay, nothing answers."""
        assert self._process is not None, "the broker was not started"
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        assert self._process is not None, "the broker was not started"
        self._process.send_signal(signal.SIGCONT)

    @property
    def _config(self) -> Path:
        return self._directory / "server.properties"

    def _prepare(self) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        data = self._directory / "data"
        addresses = f"PLAINTEXT://127.0.0.1:{self._port},CONTROLLER://127.0.0.1:{self._controller_port}"
        settings = {
            **_SETTINGS,
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{self._controller_port}",
            "listeners": addresses,
            "advertised.listeners": addresses,
            "log.dirs": str(data),
            **self._extra,
        }
        self._config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        (self._directory / "log4j2.yaml").write_text(_LOGGING)
        home = self._jars.parent
        with FileLock(str(home / "archive.lock")):
            template = home / "formatted"
            if not template.is_dir():
                self._format(data)
                self._make_archive(home)
                shutil.rmtree(data)
                self._format(data)
                shutil.copytree(data, template)
                return
        if not data.is_dir():
            # A formatted folder may be copied: that saves a start of Java.
            shutil.copytree(template, data)

    def _format(self, data: Path) -> None:
        shutil.rmtree(data, ignore_errors=True)
        cluster = base64.urlsafe_b64encode(self._ids.nonce()).decode().rstrip("=")
        # An id that begins with a dash would be taken for an option.
        command = [*self._java(("-Xmx128m",)), *self._classpath(), "kafka.tools.StorageTool", "format", "--standalone"]
        done = subprocess.run(
            [*command, "-t", "x" + cluster[1:], "-c", str(self._config)], capture_output=True, text=True, check=False, timeout=120
        )
        if done.returncode:
            raise BrokerUnavailable(f"Kafka could not format its data folder {data}: {done.stdout}{done.stderr}")

    def _make_archive(self, home: Path) -> None:
        """Start once with the JVM writing down the classes that it loads."""
        made = home / "classes.jsa.new"
        with (self._directory / "output.log").open("ab") as output:
            self._process = subprocess.Popen(
                [*self._java(_JVM), f"-XX:ArchiveClassesAtExit={made}", *self._classpath(), "kafka.Kafka", str(self._config)],
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )
        try:
            self._wait_until_it_answers()
        finally:
            self.stop()
        if made.is_file():
            made.replace(home / "classes.jsa")

    def _java(self, options: tuple[str, ...]) -> list[str]:
        logging = self._directory / "log4j2.yaml"
        return [java_command(), *options, f"-Dlog4j2.configurationFile={logging}"]

    def _classpath(self) -> list[str]:
        # In a fixed order: an archive of classes fits one list of jars only.
        return ["-cp", os.pathsep.join(str(jar) for jar in sorted(self._jars.glob("*.jar")))]

    def _wait_until_it_answers(self) -> None:
        # Imported here: the client is an extra, and whoever only names a broker need not have it.
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        deadline_s = self._clock.steady_s() + START_LIMIT_S
        process = self._process
        assert process is not None
        admin: AdminClient | None = None
        while self._clock.steady_s() < deadline_s:
            if process.poll() is not None:
                raise BrokerUnavailable(f"the broker ended with status {process.returncode}:\n{self.output[-2000:]}")
            if admin is None and _listens(self._port):
                admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
            if admin is not None:
                try:
                    if admin.list_topics(timeout=2).brokers:
                        return
                except KafkaException:
                    pass
            self._clock.sleep(_POLL_S)
        self.stop()
        raise BrokerUnavailable(f"the broker did not answer within {START_LIMIT_S:.0f} s:\n{self.output[-2000:]}")


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _free_ports(count: int) -> list[int]:
    """Ports nobody listens on, all held at once so that they differ."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
