"""What a write by an open handle costs besides writing its rows, as counts: no clock is asked."""

import pytest

from tablestore.io.memory import MemoryFileStore
from tablestore.options import Option, TableOptions
from tablestore.testing.lab import Lab

EVERYTHING = {
    "write-only": "false",
    "num-sorted-run.compaction-trigger": "3",
    "snapshot.num-retained.min": "2",
    "snapshot.num-retained.max": "4",
    "tag.automatic-creation": "process-time",
}


@pytest.mark.parametrize("keyed", [True, False])
def test_a_handle_parses_its_options_once(keyed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab(MemoryFileStore(f"parse-once-{keyed}"), keyed=keyed, options=EVERYTHING)
    table = lab.open()
    asked: list[str] = []
    value = TableOptions.value

    def counted(self: TableOptions, option: Option) -> object:
        asked.append(option.key)
        return value(self, option)

    # As many commits as it takes to compact, to tag and to expire.
    for number in range(6):
        lab.write(table, (number, "first"))
    monkeypatch.setattr(TableOptions, "value", counted)
    lab.open()
    assert asked, "opening a table asks for its options"
    asked.clear()
    for number in range(6):
        lab.write(table, (number, "again"))
    assert sorted(set(asked)) == []
