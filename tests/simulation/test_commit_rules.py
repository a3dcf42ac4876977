"""Every rule of committing, played on the engine. The scenes live in ``tests.support.commitrules``."""

from pathlib import Path

import pytest

from tablestore.io.local import LocalFileStore
from tablestore.io.memory import MemoryFileStore
from tests.support.commitrules import RULES, history, publishing

# The others do not touch what differs between stores.
ABOUT_THE_STORE = [name for name, rule in RULES.items() if rule.__module__ in (publishing.__name__, history.__name__)]


@pytest.mark.deep_after(2)
@pytest.mark.parametrize("name", RULES)
def test_rule(name: str, tmp_path: Path) -> None:
    RULES[name](MemoryFileStore(f"rules{tmp_path}"))


@pytest.mark.deep_after(4)
@pytest.mark.parametrize("name", ABOUT_THE_STORE)
def test_rule_on_local_files(name: str, tmp_path: Path) -> None:
    RULES[name](LocalFileStore(tmp_path))
