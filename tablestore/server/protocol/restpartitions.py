"""Partitions of the protocol: those that have files, as the newest snapshot has them. A table without partitioning is one.

A partition without files is none, so there is nothing to register: creating one and marking one as done is for tables of other
kinds, and clients that keep marks themselves do so (``success-file``).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tablestore.format.binaryrow import decode_row
from tablestore.format.partitiontext import partition_value_text
from tablestore.server.protocol.errorresponse import ErrorResponse, RequestRefused, bad_request
from tablestore.server.protocol.exchange import Call, json_flag, json_items
from tablestore.server.protocol.listpages import matching, page_of
from tablestore.server.protocol.restaccess import check_sees_all
from tablestore.server.protocol.restservice import RestService
from tablestore.store.context import TableContext
from tablestore.store.filesums import FileSums, summed_files
from tablestore.types.datatypes import DataType


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPartition:
    """A partition. ``name``: as its directory is called; ``spec``: the texts in it; ``values``: what they stand for."""

    name: str
    spec: Mapping[str, str]
    values: Mapping[str, object]
    sums: FileSums

    def content(self, total_buckets: int) -> dict[str, object]:
        """The partition as the protocol has it."""
        return {
            "spec": dict(self.spec),
            "recordCount": self.sums.rows,
            "fileSizeInBytes": self.sums.size_bytes,
            "fileCount": self.sums.files,
            "lastFileCreationTime": self.sums.newest_millis or 0,
            "totalBuckets": total_buckets,
            "done": False,
            "updatedAt": self.sums.newest_millis,
        }


def list_partitions(service: RestService, call: Call) -> dict[str, object]:
    """A page of the partitions of a table."""
    check_sees_all(service, call, "a list of its partitions")
    context = service.table(call.names).context
    partitions = {one.name: one for one in _partitions(context)}
    names, token = page_of(matching(partitions, call.query.get("partitionNamePattern")), call.query)
    buckets = context.settings.total_buckets
    return {"partitions": [partitions[name].content(buckets) for name in names], "nextPageToken": token}


def list_partitions_by_names(service: RestService, call: Call) -> dict[str, object]:
    """The partitions of the specs in the body that are there."""
    check_sees_all(service, call, "a list of its partitions")
    context = service.table(call.names).context
    wanted, buckets = {_name(context, spec) for spec in _specs(call, "specs")}, context.settings.total_buckets
    return {"partitions": [one.content(buckets) for one in _partitions(context) if one.name in wanted], "nextPageToken": None}


def list_partitions_by_filter(service: RestService, call: Call) -> dict[str, object]:
    """Refuses: clients filter the list."""
    raise RequestRefused(ErrorResponse(code=501, message="list the partitions, and filter them"))


def create_partitions(service: RestService, call: Call) -> dict[str, object]:
    """Refuses: a partition comes with its first rows."""
    raise RequestRefused(ErrorResponse(code=501, message="a partition comes with its first rows; write them"))


def mark_done_partitions(service: RestService, call: Call) -> None:
    """Refuses: clients mark partitions by a file."""
    raise RequestRefused(
        ErrorResponse(
            code=501, message="this service keeps no marks of partitions: partition.mark-done-action=success-file makes files"
        )
    )


def drop_partitions(service: RestService, call: Call) -> dict[str, object]:
    """Drops partitions with their rows, in one commit."""
    check_sees_all(service, call, "dropping of partitions")
    table = service.table(call.names)
    context, specs = table.context, _specs(call, "partitionSpecs")
    there = {one.name: one for one in _partitions(context)}
    dropped = [spec for spec in specs if _name(context, spec) in there]
    missing = [spec for spec in specs if _name(context, spec) not in there]
    if missing and not json_flag(call.json(), "ignoreIfNotExists", default=True):
        raise bad_request(f"table {table.name} has no partition {_name(context, missing[0])}")
    if dropped:
        table.drop_partitions([there[_name(context, spec)].values for spec in dropped])
    return {"dropped": dropped, "missing": missing}


def _partitions(context: TableContext) -> Iterator[ListedPartition]:
    schema = context.schema
    types = [field.type for field in schema.partition_fields]
    for sums in summed_files(context.manifests, context.snapshots.latest(), "partition"):
        values = decode_row(sums.group[0], types)
        texts = [_text(context, value, data_type) for value, data_type in zip(values, types, strict=True)]
        spec = dict(zip(schema.partition_keys, texts, strict=True))
        named_values = dict(zip(schema.partition_keys, values, strict=True))
        yield ListedPartition(name=_spelt(spec), spec=spec, values=named_values, sums=sums)


def _text(context: TableContext, value: object, data_type: DataType) -> str:
    settings = context.settings
    if value is None or (isinstance(value, str) and not value.strip()):
        return settings.default_partition
    return partition_value_text(value, data_type, legacy=settings.legacy_partition_names)


def _spelt(spec: Mapping[str, str]) -> str:
    return "/".join(f"{key}={text}" for key, text in spec.items())


def _specs(call: Call, key: str) -> list[dict[str, str]]:
    specs = [item.content for item in json_items(call.json(), key)]
    for spec in specs:
        if not spec or not all(isinstance(value, str) for value in spec.values()):
            raise bad_request(f"expected texts by partition columns under {key!r}, found {str(spec)[:120]!r}")
    return [{column: str(value) for column, value in spec.items()} for spec in specs]


def _name(context: TableContext, spec: Mapping[str, str]) -> str:
    keys = context.schema.partition_keys
    if set(spec) != set(keys):
        raise bad_request(f"expected values of the partition columns {', '.join(keys) or '(none)'}, found {', '.join(spec)}")
    return _spelt({key: spec[key] for key in keys})
