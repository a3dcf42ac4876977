"""Partitions of the protocol: those that have files, as the newest snapshot has them. A table without partitioning is one.

A partition without files is none, so there is nothing to register: creating one that has rows finds it there, and creating one
that has none is refused. Tables with ``metastore.partitioned-table`` have marks for those that are done, as files that other
engines make and look for too (``success-file``).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tablestore.format.binaryrow import decode_row
from tablestore.format.partitiontext import partition_value_text
from tablestore.server.protocol.errorresponse import ErrorResponse, RequestRefused, ResourceType, bad_request, name_conflict
from tablestore.server.protocol.exchange import Call, json_flag, json_items, understood
from tablestore.server.protocol.listpages import MAX_RESULTS, PAGE_TOKEN, matching, page_of
from tablestore.server.protocol.restaccess import check_sees_all
from tablestore.server.protocol.restservice import RestService
from tablestore.store.context import TableContext
from tablestore.store.filesums import FileSums, summed_files
from tablestore.store.partitionmarks import is_done, mark_done
from tablestore.types.datatypes import DataType

PATTERN = "partitionNamePattern"
# The option by which Paimon's engines tell the catalog of partitions.
_HAS_MARKS = "metastore.partitioned-table"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPartition:
    """A partition. ``name``: as its directory is called; ``spec``: the texts in it; ``values``: what they stand for."""

    name: str
    spec: Mapping[str, str]
    values: Mapping[str, object]
    sums: FileSums

    def content(self, total_buckets: int, *, is_done: bool) -> dict[str, object]:
        """The partition as the protocol has it."""
        return {
            "spec": dict(self.spec),
            "recordCount": self.sums.rows,
            "fileSizeInBytes": self.sums.size_bytes,
            "fileCount": self.sums.files,
            "lastFileCreationTime": self.sums.newest_millis or 0,
            "totalBuckets": total_buckets,
            "done": is_done,
            "updatedAt": self.sums.newest_millis,
        }


def list_partitions(service: RestService, call: Call) -> dict[str, object]:
    """A page of the partitions of a table."""
    return _page(service, call, call.query)


def list_partitions_by_names(service: RestService, call: Call) -> dict[str, object]:
    """The partitions of the specs in the body that are there."""
    check_sees_all(service, call, "a list of its partitions")
    context = service.table(call.names).context
    wanted = {_name(context, spec) for spec in _specs(call, "specs")}
    listed = [one for one in _partitions(context) if one.name in wanted]
    return {"partitions": _contents(context, listed), "nextPageToken": None}


def list_partitions_by_filter(service: RestService, call: Call) -> dict[str, object]:
    """A page of all partitions: by the protocol there may be more than the filter lets through, and clients apply it again."""
    request = call.json()
    understood(lambda: request.text("filter"))
    texts = understood(lambda: {key: request.optional_text(key) for key in (PATTERN, PAGE_TOKEN)})
    most = understood(lambda: request.optional_integer(MAX_RESULTS))
    query = {key: value for key, value in texts.items() if value is not None}
    return _page(service, call, query if most is None else {**query, MAX_RESULTS: str(most)})


def create_partitions(service: RestService, call: Call) -> dict[str, object]:
    """Finds the partitions that have rows, as engines ask for after a commit. Refuses one that has none."""
    check_sees_all(service, call, "a list of its partitions")
    context, specs = service.table(call.names).context, _specs(call, "partitionSpecs")
    there = {one.name for one in _partitions(context)}
    existing = [spec for spec in specs if _name(context, spec) in there]
    if existing and not json_flag(call.json(), "ignoreIfExists", default=True):
        name = _name(context, existing[0])
        raise name_conflict(ResourceType.PARTITION, name, f"the table has a partition {name} already")
    if len(existing) < len(specs):
        raise RequestRefused(ErrorResponse(code=501, message="a partition comes with its first rows; write them"))
    return {"created": [], "existed": existing}


def mark_done_partitions(service: RestService, call: Call) -> None:
    """Marks partitions as done by a file in each. Refuses for tables whose partitions the catalog does not keep: clients then do
    without, as the protocol has it."""
    check_sees_all(service, call, "marks of its partitions")
    table = service.table(call.names)
    context, specs = table.context, _specs(call, "specs")
    if not _has_marks(context):
        raise RequestRefused(
            ErrorResponse(code=501, message=f"table {table.name} has no marks of partitions; set {_HAS_MARKS} = true")
        )
    there = {one.name: one for one in _partitions(context)}
    for spec in specs:
        if (name := _name(context, spec)) not in there:
            raise bad_request(f"table {table.name} has no partition {name}")
    for spec in specs:
        mark_done(context, list(there[_name(context, spec)].values.values()))


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


def _page(service: RestService, call: Call, query: Mapping[str, str]) -> dict[str, object]:
    check_sees_all(service, call, "a list of its partitions")
    context = service.table(call.names).context
    partitions = {one.name: one for one in _partitions(context)}
    names, token = page_of(matching(partitions, query.get(PATTERN)), query)
    return {"partitions": _contents(context, [partitions[name] for name in names]), "nextPageToken": token}


def _contents(context: TableContext, listed: Sequence[ListedPartition]) -> list[dict[str, object]]:
    """Partitions as the protocol has them. A mark costs a question to the store, so only tables that have marks are looked at."""
    buckets, has_marks = context.settings.total_buckets, _has_marks(context)
    return [one.content(buckets, is_done=has_marks and is_done(context, list(one.values.values()))) for one in listed]


def _has_marks(context: TableContext) -> bool:
    return bool(context.schema.partition_keys) and context.schema.options.get(_HAS_MARKS, "").strip().lower() == "true"


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
