"""A table's life over a log, drawn by chance: nothing is lost, doubled or mixed up in the log, and no follower is misled.

The play is ``tablestore.testing.night.logplay``. Over Kafka it runs in tests/integration/kafka; planted bugs, one at a time, are in
``test_planted_log_bugs``.
"""

from collections import Counter

import pytest

from tablestore.testing.memorylog import MemoryBroker, memory_logs
from tablestore.testing.night.logplay import HISTORY_KINDS, STEPS, LogPlay

# In these each planted bug is caught.
SEEDS = (1, 2, 3, 6, 11, 18, 24, 27, 29)
MANY = 200


def play(seed: int) -> Counter[str]:
    broker = MemoryBroker(f"lives-{seed}")
    try:
        with memory_logs():
            return LogPlay(seed, broker).run()
    finally:
        broker.close()


@pytest.mark.deep
@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_happens_to_a_table_its_log_and_its_followers_are_right_or_say_why_not(seed: int) -> None:
    play(seed)


@pytest.mark.slow
def test_whatever_happens_in_many_lives_and_everything_does() -> None:
    happened = sum((play(seed) for seed in range(MANY)), Counter[str]())
    refused = ("position-table", "position-history", "snapshot-expired", *HISTORY_KINDS)
    assert min(happened[what] for what in (*STEPS, *refused, "refused to write", "named", "restarted")) > 0, happened
