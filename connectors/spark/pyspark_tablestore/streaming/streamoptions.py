"""The options that a stream has beside those of a write.

checkpointLocation   where Spark keeps the progress of the query
queryName            Spark's name of the query; not looked at
adopt-checkpoint     true: the table takes the batches of a checkpoint that it does not know, or that has moved; give it once
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark_tablestore.sourceoptions import SourceOptions, parse_options
from tablestore.errors import InvalidInputError

_CHECKPOINT, _NAME, _ADOPT = "checkpointlocation", "queryname", "adopt-checkpoint"
_LOCAL = "file:"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """``table``: as for any write; the rest as :class:`~tablestore.distributed.streambatch.StreamBatch` has it."""

    table: SourceOptions
    checkpoint: str | None
    adopts: bool


def parse_stream_options(options: Mapping[str, str]) -> StreamOptions:
    """Parses what Spark collected. Raises InvalidInputError."""
    folded = {key.lower(): value for key, value in options.items()}
    checkpoint, adopts = folded.pop(_CHECKPOINT, None) or None, folded.pop(_ADOPT, None) or "false"
    folded.pop(_NAME, None)
    if adopts.lower() not in ("true", "false"):
        raise InvalidInputError(f"option {_ADOPT}: expected true or false, found {adopts!r}", kind="option-value")
    table = parse_options(folded)
    if table.commit_user is not None:
        raise InvalidInputError(
            "a stream commits by its query id and numbers its batches itself; leave out commit-user and commit-identifier",
            kind="commit-identifier",
        )
    return StreamOptions(
        table=table, checkpoint=None if checkpoint is None else place_of(checkpoint), adopts=adopts.lower() == "true"
    )


def place_of(checkpoint: str) -> str:
    """The same text for the same checkpoint: local ones as absolute paths, and no slash at the end."""
    if checkpoint.startswith(_LOCAL):
        path = checkpoint.removeprefix(_LOCAL)
        return os.path.abspath("/" + path.lstrip("/"))
    return checkpoint.rstrip("/") if "://" in checkpoint else os.path.abspath(checkpoint)
