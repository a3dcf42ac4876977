"""Bringing changes elsewhere: what ``tablestore consume --to`` and the like do."""

from dataclasses import asdict
from typing import cast

import tablestore as ts
from tablestore.cli.command import CommandRun
from tablestore.cli.commands.changes.consumeoptions import ConsumeOptions, Delivery
from tablestore.cli.rows.rowformat import RowFormat
from tablestore.log.follow.request import ScanMode


def deliver(session: CommandRun, name: str, options: ConsumeOptions, delivery: Delivery) -> None:
    """Deliver, and say what was brought; under ``--json`` each commit is a line."""
    table = session.table(name)
    to: ts.Table | ts.Topic | str
    if delivery.topic is not None:
        to = ts.Topic(delivery.topic, delivery.brokers, delivery.topic_format.value)
    else:
        to = session.table(delivery.table) if delivery.table is not None else str(delivery.folder)
    report = ts.deliver(
        table,
        to,
        format="parquet" if delivery.format is RowFormat.PARQUET else "json",
        storage_options=session.storage,
        name=delivery.name,
        scan=cast("ScanMode | None", options.scan),
        columns=options.columns,
        filter=options.filter,
        follow=options.follow,
        consumer_id=options.consumer,
        on_discontinuity="skip" if options.gaps == "skip" else "raise",
        on_commit=lambda commit_report: _say_delivered(session, commit_report),
    )
    session.out.done(asdict(report), f"{name} to {to if isinstance(to, str) else to.name}: {report}.")


def _say_delivered(session: CommandRun, commit_report: ts.DeliveryReport) -> None:
    if session.out.as_json:
        session.out.line(asdict(commit_report))
        session.out.flush()
