"""Parses the options of a stream to the request that the engine understands."""

from collections.abc import Mapping
from typing import Any

from pyspark_tablestore.sourceoptions import SourceOptions, parse_size, parsed
from tablestore import options as opt
from tablestore.distributed.read import ReadPin
from tablestore.distributed.stream.streamrequest import MOST_FILES, BatchLimits, StreamRequest, check_request, stream_fields
from tablestore.errors import InvalidInputError
from tablestore.options import parse_bool, parse_int
from tablestore.store.rowview import shown_fields
from tablestore.types.datatypes import Field

_TIME = (opt.LOG_SCAN_TIMESTAMP.key, opt.LOG_SCAN_TIMESTAMP_ALIAS)


def stream_request(options: SourceOptions, parallelism: int = 1) -> StreamRequest:
    """The stream that the options of a relation ask for. Raises InvalidInputError."""
    if options.travels:
        raise InvalidInputError(
            "a stream takes no snapshot-id and no timestamp-millis, which read a table as it was: it begins with log.scan = full, "
            "latest, from-timestamp (with log.scan.timestamp-mills) or from-snapshot (with from-snapshot = <id>)",
            kind="batch-option",
        )
    stream_options = options.stream
    limits = BatchLimits(
        rows=_number(stream_options, "max-rows-per-trigger"),
        size_bytes=parsed(stream_options, "max-bytes-per-trigger", parse_size, "a size such as 64 mb"),
        files=_number(stream_options, "max-files-per-trigger"),
    )
    ways: Any = stream_options.get("on-discontinuity") or "raise"
    times = {
        key: time for key in _TIME if (time := parsed(stream_options, key, parse_int, "milliseconds since the epoch")) is not None
    }
    opt.refuse_two_spellings(times, kind="scan-mode")
    return StreamRequest(
        columns=options.columns,
        filter=options.filter,
        row_kinds=_flag(stream_options, "row-kinds"),
        pairs=_flag(stream_options, "pairs"),
        scan=stream_options.get(opt.LOG_SCAN.key) or None,
        time_millis=next(iter(times.values()), None),
        from_snapshot=parsed(stream_options, "from-snapshot", parse_int, "the id of a snapshot, or 0"),
        consumer_id=stream_options.get("consumer-id") or None,
        on_discontinuity=ways,
        limits=limits if limits != BatchLimits() else BatchLimits(files=MOST_FILES),
        task_bytes=options.task_bytes,
        parallelism=parallelism,
    )


def asked_fields(pin: ReadPin, options: SourceOptions) -> tuple[Field, ...]:
    """The columns of the stream of a table, at the schema of ``pin``; checks all options. Raises InvalidInputError."""
    context, request = pin.spec.open(pin.schema_id), stream_request(options)
    fields = stream_fields(context.schema, check_request(context, request).columns, row_kinds=request.row_kinds)
    return shown_fields(context.under(pin.rules).view, fields)


def _flag(stream_options: Mapping[str, str], key: str) -> bool:
    return bool(parsed(stream_options, key, parse_bool, "true or false"))


def _number(stream_options: Mapping[str, str], key: str) -> int | None:
    return parsed(stream_options, key, _positive, "a whole number from 1")


def _positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise ValueError(text)
    return number
