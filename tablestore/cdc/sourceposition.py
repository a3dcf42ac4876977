"""Defines the position of a job in its source: the text that it notes in the snapshot of each of its commits.

    {"source": "orders", "id": "Xv2…", "offsets": {"0": 1204, "1": 977}, "run": "5b1c…"}

``id`` tells the topic from others that had its name. ``run`` is the process that committed: by it a job sees that another one of
its name has taken its place.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from tablestore.errors import FormatError
from tablestore.format.limits import parse_json_bounded


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePosition:
    """A position in a topic."""

    source: str
    source_id: str
    offsets: Mapping[int, int]
    run: str

    def text(self) -> str:
        """The text that is stored."""
        offsets = {str(partition): offset for partition, offset in sorted(self.offsets.items())}
        content = {"source": self.source, "id": self.source_id, "offsets": offsets, "run": self.run}
        return json.dumps(content, separators=(",", ":"))


def parse_position(text: str, *, where: str) -> SourcePosition:
    """The inverse of ``text``. Raises FormatError."""
    try:
        content = parse_json_bounded(text.encode(), where)
        assert isinstance(content, dict)
        return SourcePosition(
            source=str(content["source"]),
            source_id=str(content["id"]),
            offsets={int(partition): int(offset) for partition, offset in content["offsets"].items()},
            run=str(content["run"]),
        )
    except (AssertionError, FormatError, ArithmeticError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise FormatError(
            f"{where}: expected the position of a job in its topic, found {text[:200]!r}; begin it anew under another name",
            kind="source-position",
        ) from error
