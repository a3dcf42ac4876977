"""What an alteration does to a table's log, decided without a broker (with one: tests/integration/kafka/test_alter.py)."""

import pytest

from tablestore.errors import UnsupportedError
from tablestore.log.alterlog import LogChoice, LogStep, pick_step
from tablestore.log.settings import log_settings
from tablestore.testing.contracts.following import SCHEMA
from tablestore.types.newschema import new_schema
from tablestore.types.schema import TableSchema

KAFKA = {"bucket": "2", "log.kafka.bootstrap.servers": "a:1", "log.kafka.topic": "t"}


def schema_with(options: dict[str, str]) -> TableSchema:
    return new_schema(schema=SCHEMA, primary_key=["id"], partition_by=(), options=options, comment=None, time_millis=1)


def choice(**changed: str) -> LogChoice:
    return LogChoice(settings=log_settings(schema_with({**KAFKA, **changed}), name="t"), consistency="transactional")


FILES = choice(**{"log.system": "filestore"})


@pytest.mark.parametrize(
    ("before", "after", "step"),
    [
        (FILES, FILES, LogStep.KEEP),
        (FILES, choice(), LogStep.BEGIN),
        (choice(), FILES, LogStep.END),
        (choice(), choice(), LogStep.KEEP),
        (choice(), choice(**{"log.retention": "1 h", "tablestore.log.publisher-slots": "2"}), LogStep.KEEP),
        (choice(), choice(**{"log.kafka.bootstrap.servers": "b:1"}), LogStep.MOVE),
        (FILES, choice(bucket="5", **{"log.changelog-mode": "all"}), LogStep.BEGIN),
    ],
)
def test_what_becomes_of_the_log_follows_from_what_it_was_and_shall_be(before: LogChoice, after: LogChoice, step: LogStep) -> None:
    assert pick_step(before, after, table="t") is step


@pytest.mark.parametrize(
    "changed", [{"bucket": "3"}, {"log.kafka.topic": "u"}, {"log.changelog-mode": "all"}, {"log.format": "json"}]
)
def test_what_published_records_rest_on_stays(changed: dict[str, str]) -> None:
    with pytest.raises(UnsupportedError, match=f"{next(iter(changed))}.*filestore") as caught:
        pick_step(choice(), choice(**changed), table="t")
    assert caught.value.kind == "immutable-option"
