"""Creates a table's topic with the table, drops it with the table, and checks it before anything is sent to it."""

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from tablestore.clock import Clock
from tablestore.errors import AlreadyExistsError, InvalidInputError, NotFoundError, StorageError
from tablestore_kafka.client import translated

ADMIN_TIMEOUT_S = 15.0
# The bytes that a broker counts beside key and value of a record alone in its batch: the batch's own fields, and our headers.
BATCH_OVERHEAD_BYTES = 64 * 1024
# The same, by what it mostly is: of a limit that others have set little is given away.
RECORD_OVERHEAD_BYTES = 8 * 1024
# The client takes no lower limit.
LEAST_RECORD_BYTES = 1_000
_POLL_S = 0.02


class Topics:
    """Topics of one cluster."""

    def __init__(self, admin: AdminClient, servers: str, clock: Clock) -> None:
        self._admin, self._servers, self._clock = admin, servers, clock

    def create(
        self, topic: str, *, partitions: int, retention_ms: int | None, ignore_if_exists: bool, record_bytes: int | None = None
    ) -> bool:
        """Makes the topic; True if it is new, False if it was there, may be used, and has as many partitions."""
        config: dict[str, str] = {"cleanup.policy": "delete"}
        if retention_ms is not None:
            config["retention.ms"] = str(retention_ms)
        if record_bytes is not None:
            config["max.message.bytes"] = str(record_bytes + BATCH_OVERHEAD_BYTES)
        # -1: as many replicas as the cluster gives by default.
        new_topic = NewTopic(topic, num_partitions=partitions, replication_factor=-1, config=config)
        try:
            self._wait(self._admin.create_topics([new_topic], request_timeout=ADMIN_TIMEOUT_S), topic)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise translated(error, f"creating topic {topic}", self._servers) from error
            if not ignore_if_exists:
                raise AlreadyExistsError(
                    f"Failed to create kafka topic. Reason: topic {topic} exists for table {topic}. Suggestion: please try "
                    f"`DESCRIBE TABLE {topic}` to check whether table exists in current catalog. If table exists and the DDL needs "
                    "to be executed multiple times, please use `CREATE TABLE IF NOT EXISTS` ddl instead. Otherwise, please choose "
                    "another table name or manually delete the current topic and try again.",
                    kind="topic-exists",
                ) from error
            self.incarnation(topic, partitions=partitions, exactly=True)
            return False
        self.wait_until_known(topic, partitions)
        return True

    def retain(self, topic: str, retention_ms: int | None, *, record_bytes: int | None = None) -> None:
        """Changes how long the topic keeps its records, and how large they may be; None: as the brokers do by default."""
        new_config = {
            "retention.ms": retention_ms,
            "max.message.bytes": None if record_bytes is None else record_bytes + BATCH_OVERHEAD_BYTES,
        }
        entries = [
            ConfigEntry(
                name,
                None if value is None else str(value),
                incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
            )
            for name, value in new_config.items()
        ]
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
        try:
            for future in self._admin.incremental_alter_configs([resource], request_timeout=ADMIN_TIMEOUT_S).values():
                future.result()
        except KafkaException as error:
            raise translated(error, f"changing the settings of topic {topic}", self._servers) from error

    def record_bytes(self, topic: str) -> int | None:
        """The most bytes that key and value of a record may have together by the topic's own limit; None where Kafka does not
        say."""
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        try:
            config = self._admin.describe_configs([resource], request_timeout=ADMIN_TIMEOUT_S)[resource].result()
        except KafkaException:
            # Not there, or we may not look: the next send reports what is the matter.
            return None
        limit = int(config["max.message.bytes"].value)
        return max(limit - RECORD_OVERHEAD_BYTES, limit // 2, LEAST_RECORD_BYTES)

    def drop(self, topic: str, *, ignore_if_not_exists: bool) -> None:
        """Removes the topic and what it holds."""
        try:
            self._wait(self._admin.delete_topics([topic], request_timeout=ADMIN_TIMEOUT_S), topic)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise translated(error, f"deleting topic {topic}", self._servers) from error
            if not ignore_if_not_exists:
                raise NotFoundError(
                    f"Failed to delete kafka topic. Reason: topic {topic} doesn't exist for table {topic}. Suggestion: please try "
                    "`DROP TABLE IF EXISTS` ddl instead.",
                    kind="no-such-topic",
                ) from error
            return
        self._wait_until_gone(topic)

    def incarnation(self, topic: str, *, partitions: int, exactly: bool = False) -> str:
        """Kafka's id of this topic: a topic made again under the same name has another. Also checks the number of partitions.

        Partitions that somebody has added hold nothing of the table and are no harm, unless it is asked for ``exactly`` so many.
        """
        try:
            described = self._admin.describe_topics(TopicCollection([topic]), request_timeout=ADMIN_TIMEOUT_S)[topic].result()
        except KafkaException as error:
            if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise NotFoundError(
                    f"topic {topic} does not exist at {self._servers}: it was deleted, or `log.kafka.bootstrap.servers` names "
                    "another cluster; `tablestore log rebuild` makes it again from the table",
                    kind="no-such-topic",
                ) from error
            raise translated(error, f"looking at topic {topic}", self._servers) from error
        partition_count = len(described.partitions)
        if partition_count < partitions or (exactly and partition_count != partitions):
            raise InvalidInputError(
                f"topic {topic} has {partition_count} partition(s), expected {partitions}, one per bucket of the table: give the "
                "table another log.kafka.topic, or delete the topic and run `tablestore log rebuild`",
                kind="topic-partitions",
            )
        return str(described.topic_id)

    def refuse_missing(self, topic: str) -> None:
        """Raises NotFoundError if there is no such topic."""
        self.incarnation(topic, partitions=0)

    def wait_until_known(self, topic: str, partitions: int) -> None:
        """Waits until brokers know a topic: one under load says for a moment that it does not know the topic that it has just
        made."""
        deadline_s = self._clock.steady_s() + ADMIN_TIMEOUT_S
        while True:
            try:
                self.incarnation(topic, partitions=partitions)
                return
            except NotFoundError:
                if self._clock.steady_s() >= deadline_s:
                    raise
            self._clock.sleep(_POLL_S)

    def _wait_until_gone(self, topic: str) -> None:
        """Waits until brokers no longer know a topic: for a moment they may know a deleted one, for which one made anew would be
        taken."""
        deadline_s = self._clock.steady_s() + ADMIN_TIMEOUT_S
        while True:
            try:
                self.incarnation(topic, partitions=0)
            except NotFoundError:
                return
            if self._clock.steady_s() >= deadline_s:
                raise StorageError(
                    f"topic {topic} is still there {ADMIN_TIMEOUT_S:.0f} s after Kafka at {self._servers} has agreed to delete it; "
                    "check that all of its brokers are up, then repeat it",
                    kind="kafka",
                )
            self._clock.sleep(_POLL_S)

    @staticmethod
    def _wait(futures: Mapping[str, "Future[Any]"], topic: str) -> None:
        futures[topic].result()
