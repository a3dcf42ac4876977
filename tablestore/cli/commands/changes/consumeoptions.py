"""Describes a consume command: which changes, how they are shown, or where they are brought. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Literal

import typer

from tablestore.cli.rows.rowformat import RowFormat


class TopicForm(StrEnum):
    """The form of the messages of a topic."""

    JSON = "json"
    DEBEZIUM_JSON = "debezium-json"


@dataclass(frozen=True, kw_only=True)
class ConsumeOptions:
    """The changes of a table that are wanted."""

    from_snapshot: int | None
    to_snapshot: int | None
    snapshot_ids: bool
    scan: str | None
    timestamp: int | None
    consumer: str | None
    follow: bool
    columns: Sequence[str] | None
    filter: str | None
    pairs: bool
    gaps: Literal["raise", "skip", "restart"]

    @property
    def is_range(self) -> bool:
        """True if a range of snapshots is named."""
        return self.from_snapshot is not None or self.to_snapshot is not None

    @property
    def onward(self) -> bool:
        """From a place on, and not between two snapshots."""
        return self.scan is not None or self.timestamp is not None or self.consumer is not None or self.follow


@dataclass(frozen=True, kw_only=True)
class Shown:
    """The way in which changes are printed, or written to a file."""

    format: RowFormat | None
    output: Path | None
    limit: int | None

    @property
    def at_end(self) -> bool:
        """True if the output is complete only at the end."""
        return self.format is RowFormat.PARQUET or (self.output is not None and str(self.output) != "-")

    def refuse_mixed(self, options: ConsumeOptions) -> None:
        """Raise BadParameter for what does not go together."""
        if options.is_range and options.onward:
            raise typer.BadParameter(
                "--from-snapshot and --to-snapshot name a range; --scan, --timestamp, --consumer and --follow go on from a place",
                param_hint="'--from-snapshot'",
            )
        if options.onward and options.snapshot_ids:
            raise typer.BadParameter("only a range of snapshots has them: use --from-snapshot", param_hint="'--snapshot-ids'")
        if options.follow and self.at_end:
            raise typer.BadParameter(
                "a file is complete at the end, and --follow has none: leave --output and --format parquet out",
                param_hint="'--follow'",
            )
        if options.gaps == "restart" and not options.onward:
            raise typer.BadParameter("goes with --scan, --consumer or --follow", param_hint="'--restart-at-gaps'")


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """The place that changes are brought to: a table, the files of a folder, or a topic."""

    table: str | None
    folder: str | None
    topic: str | None
    topic_format: TopicForm
    brokers: str | None
    format: RowFormat | None
    name: str | None

    @property
    def target(self) -> str | None:
        """The target that was named; None: the changes are printed."""
        return next(iter(self._named().values()), None)

    def refuse_options(self) -> None:
        """Raise BadParameter for what only a delivery has."""
        if self.name is not None:
            raise typer.BadParameter("names a delivery: it goes with --to, --to-files or --to-topic", param_hint="'--name'")

    def refuse_mixed(self, options: ConsumeOptions, shown: Shown) -> None:
        """Raise BadParameter for what does not go with a delivery."""
        _, *other_names = self._named()
        printed = {
            "--from-snapshot": options.is_range,
            "--snapshot-ids": options.snapshot_ids,
            "--after-only": not options.pairs,
            "--restart-at-gaps": options.gaps == "restart",
            "--timestamp": options.timestamp is not None,
            "--limit": shown.limit is not None,
            "--output": shown.output is not None,
            **dict.fromkeys(other_names, True),
        }
        if wrong := [option for option, is_set in printed.items() if is_set]:
            raise typer.BadParameter("does not go with what is delivered", param_hint=f"'{wrong[0]}'")
        if self.format not in (None, RowFormat.JSON, RowFormat.PARQUET) or (self.format is not None and self.folder is None):
            raise typer.BadParameter("only files have one, json or parquet; a topic has --topic-format", param_hint="'--format'")

    def _named(self) -> dict[str, str]:
        targets = {"--to": self.table, "--to-files": self.folder, "--to-topic": self.topic}
        return {option: target for option, target in targets.items() if target is not None}
