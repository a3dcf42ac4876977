"""Reads and writes Avro container files: the envelope of manifests, manifest lists and index manifests.

    "Obj" 0x01 · map{avro.schema, avro.codec, …} · sync(16)
    then blocks:  zigzag(record count) · zigzag(byte length) · compressed records · sync(16)

The framing is parsed here and fastavro reads the records of one decompressed block at a time, so that every size is
checked before memory is taken. A schema is checked before it is used: no recursion, bounded size, no type of zero bytes
(a block of those could claim any number of records). Logical types are dropped: values are plain integers.

Memory: what is kept of a file is bounded by a multiple of its bytes (see :mod:`tablestore.format.limits`). With ``lighten`` a
caller drops a part of each record: blocks that expand beyond the bound are then decoded one record at a time, and each is made
lighter at once.

Written files carry the caller's nonce as sync marker, so that equal input gives equal bytes. The nonce is never zero: Java
refuses such files. What readers would refuse is not written.
"""

import io
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

import fastavro
import pyarrow as pa

from tablestore.errors import FormatError
from tablestore.format.limits import DEFAULT_LIMITS, WRITE_LIMITS, Limits, over_limit, parse_json_bounded, refuse_to_write

AVRO_MAGIC = b"Obj\x01"
CODEC = "zstandard"
# Codecs by their name in the option manifest.compression. All other readers know them, but for snappy in Java 0.9; tables of ours
# from before may say none, which pypaimon does not open.
CODECS = {"zstd": CODEC, "zstandard": CODEC, "deflate": "deflate", "snappy": "snappy", "null": "null", "none": "null"}
ZSTD_LEVEL = 3
# Small blocks are decoded side by side (blockcolumns), and these compress no worse than large ones.
BLOCK_RECORDS = 64

# Of schemas that we write: a data file may have as many columns as its table.
_OWN_SCHEMA_LIMITS = replace(DEFAULT_LIMITS, max_schema_nodes=200_000, max_depth=256)

Schema = Any  # a parsed JSON schema: str, list or dict, as Avro has it
Lighten = Callable[[dict[str, Any]], int]
"""Drops a part of a record; returns how many bytes of the file that were."""

_PRIMITIVES = frozenset({"boolean", "int", "long", "float", "double", "bytes", "string"})
_CHUNK = 1 << 20
_ZSTD = pa.Codec("zstd")
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_LONGEST_ZSTD_HEADER = 14


class ContainerBlocks(NamedTuple):
    """The blocks of a file: the schema of its records, cleaned; the record count and the decompressed bytes of each block; and the
    places in the file where they begin."""

    schema: Schema
    blocks: list[tuple[int, bytes]]
    starts: list[int]


class RecordSchema(dict[str, object]):
    """The schema of one kind of record of ours. It never changes, so its text is made once."""

    def __init__(self, content: Mapping[str, object]) -> None:
        super().__init__(content)
        self.text = _compact(content)


def _compact(schema: Schema) -> str:
    return schema.text if isinstance(schema, RecordSchema) else json.dumps(schema, separators=(",", ":"))


def write_container(
    records: Iterable[Mapping[str, object]],
    schema: Schema,
    *,
    nonce: bytes,
    codec: str = CODEC,
    what: str = "an Avro file",
    limits: Limits = WRITE_LIMITS,
) -> bytes:
    """Encode ``records`` with ``schema``; the same records and nonce give the same bytes.

    ``nonce``: 16 bytes, not all zero, different for each attempt. ``codec``: one of the values of :data:`CODECS`. Raises
    InvalidInputError (kind ``limit``) if readers would refuse the file; ``what`` names it.
    """

    def blocks() -> Iterator[tuple[int, memoryview]]:
        following = iter(records)
        while chunk := list(islice(following, BLOCK_RECORDS)):
            yield len(chunk), encoded_records(chunk, schema)

    return write_blocks(blocks(), schema, nonce=nonce, codec=codec, what=what, limits=limits)


def write_blocks(
    blocks: Iterable[tuple[int, memoryview]],
    schema: Schema,
    *,
    nonce: bytes,
    codec: str = CODEC,
    what: str = "an Avro file",
    limits: Limits = WRITE_LIMITS,
) -> bytes:
    """The file of blocks, each a number of records and their bytes, that were encoded with ``schema``. Otherwise as
    :func:`write_container`."""
    out = io.BytesIO()
    out.write(container_header(schema, nonce=nonce, codec=codec))
    expanded = records = 0
    for count, body in blocks:
        expanded, records = expanded + len(body), records + count
        payload = compress(body, codec)
        out.write(_long(count) + _long(len(payload)) + payload + nonce)
    data = out.getvalue()
    _check_readable(what, len(data), expanded, records, limits)
    return data


def container_header(schema: Schema, *, nonce: bytes, codec: str) -> bytes:
    """The bytes of a file before its blocks (see :func:`write_container`)."""
    if len(nonce) != 16 or not any(nonce):
        raise ValueError("the nonce of an Avro file is 16 bytes, not all zero")
    text, _ = _writer_schema(_compact(schema))
    out = io.BytesIO()
    out.write(AVRO_MAGIC)
    out.write(_long(2))
    for key, value in (("avro.schema", text.encode("utf-8")), ("avro.codec", codec.encode("ascii"))):
        out.write(_long(len(key)) + key.encode("ascii") + _long(len(value)) + value)
    out.write(b"\0" + nonce)
    return out.getvalue()


def encoded_records(records: Sequence[Mapping[str, object]], schema: Schema) -> memoryview:
    """The records as the body of one block, before it is compressed."""
    _, array = _writer_schema(_compact(schema))
    body = io.BytesIO()
    # An Avro array is a counted block and an end mark: what is between is what a container block holds.
    fastavro.schemaless_writer(body, array, records)
    return body.getbuffer()[len(_long(len(records))) : -1]


def framed_block(count: int, body: memoryview, *, nonce: bytes, codec: str, zstd_level: int = ZSTD_LEVEL) -> bytes:
    """One block as it stands in a file: ``count`` records, whose bytes are ``body``."""
    payload = compress(body, codec, zstd_level=zstd_level)
    return _long(count) + _long(len(payload)) + payload + nonce


def _check_readable(subject: str, size: int, expanded: int, records: int, limits: Limits) -> None:
    for measure, value, allowed in (
        ("the size in bytes", size, limits.max_bytes),
        ("the decompressed size", expanded, limits.expanded_bytes(size)),
        ("the number of records", records, limits.records(size)),
    ):
        if value > allowed:
            way_out = "commit less at once, use shorter keys, or compact the table"
            refuse_to_write(subject, measure, value, allowed, way_out)


def read_container(
    data: bytes,
    *,
    name: str,
    limits: Limits = DEFAULT_LIMITS,
    expected: Schema | None = None,
    lighten: Lighten | None = None,
) -> list[dict[str, Any]]:
    """Decode all records; a top-level union of null and one record is unwrapped.

    ``expected``: a record schema, whose fields must be present with a compatible type or be nullable; other fields are returned
    too. ``lighten`` is called where a file expands beyond its bound. Raises FormatError, with the file's ``name``, for anything
    that is not a well-formed file within ``limits``.
    """
    blocks = read_blocks(data, name=name, limits=limits, expected=expected, lighten=lighten)
    return [record for block in blocks for record in block]


def read_blocks(
    data: bytes,
    *,
    name: str,
    limits: Limits = DEFAULT_LIMITS,
    expected: Schema | None = None,
    lighten: Lighten | None = None,
) -> Iterator[list[dict[str, Any]]]:
    """Reads as :func:`read_container` does, one block of records after the other."""
    with _own_errors(name):
        yield from _blocks(data, name, limits, expected, lighten)


def container_blocks(data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS, expected: Schema | None = None) -> ContainerBlocks:
    """The blocks of a file, decompressed. Raises FormatError as :func:`read_blocks` does."""
    with _own_errors(name):
        header, reader = _open(data, name, limits, expected)
        blocks: list[tuple[int, bytes]] = []
        starts: list[int] = []
        left = limits.expanded_bytes(len(data))
        for start, count, payload in _frames(reader, header.sync, limits):
            body = decompress(payload, header.codec, name, left)
            left -= len(body)
            blocks.append((count, body))
            starts.append(start)
        return ContainerBlocks(header.schema.plain, blocks, starts)


def records_at(
    data: bytes,
    places: Iterable[tuple[int, int]],
    *,
    name: str,
    limits: Limits = DEFAULT_LIMITS,
    expected: Schema | None = None,
) -> Iterator[dict[str, Any]]:
    """The records at some places: where a block begins in the file, and the record in the decompressed block. Neighbours of one
    block decompress it once. Raises FormatError as :func:`read_blocks` does, also where no record begins."""
    with _own_errors(name):
        header, reader = _open(data, name, limits, expected)
        block, body = -1, io.BytesIO()
        for start, offset in places:
            if start != block:
                reader.position = start
                for _, _, payload in islice(_frames(reader, header.sync, limits), 1):
                    block, body = start, io.BytesIO(decompress(payload, header.codec, name, limits.expanded_bytes(len(data))))
            body.seek(offset)
            record: Any = fastavro.schemaless_reader(body, header.schema.record, None)
            if record is None:
                raise _corrupt(name, "a record is null")
            yield record


def block_places(data: bytes) -> tuple[list[int], list[int]]:
    """The number of records of each block of a file that was written here, and where it begins."""
    header, reader = _open(data, "an Avro file", WRITE_LIMITS, None)
    frames = [(count, start) for start, count, _ in _frames(reader, header.sync, WRITE_LIMITS)]
    return [count for count, _ in frames], [start for _, start in frames]


def container_outline(data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> tuple[Schema, int]:
    """The schema of a file's records, cleaned, and their number, without decoding them. Raises FormatError as :func:`read_blocks`
    does for what it reads."""
    with _own_errors(name):
        header, reader = _open(data, name, limits, None)
        return header.schema.plain, sum(count for _, count, _ in _frames(reader, header.sync, limits))


@contextmanager
def _own_errors(name: str) -> Iterator[None]:
    """Turns the errors of a damaged file, of fastavro and of pyarrow into FormatError."""
    try:
        yield
    except FormatError:
        raise
    except (EOFError, ValueError, TypeError, LookupError, OverflowError, OSError, zlib.error, RecursionError) as error:
        raise _corrupt(name, f"{type(error).__name__}: {error}") from error
    except Exception as error:  # fastavro and pyarrow have errors of their own; none of them may escape
        if type(error).__module__.split(".")[0] in ("fastavro", "pyarrow"):
            raise _corrupt(name, f"{type(error).__name__}: {error}") from error
        raise


@dataclass(frozen=True, slots=True)
class _Header:
    codec: str
    sync: bytes
    schema: "_ReaderSchema"


def _open(data: bytes, name: str, limits: Limits, expected: Schema | None) -> tuple[_Header, "_Cursor"]:
    """The header of a file, and a reader where its blocks begin."""
    if len(data) > limits.max_bytes:
        over_limit(name, "the size in bytes", len(data), limits.max_bytes)
    reader = _Cursor(data, name)
    if reader.take(4) != AVRO_MAGIC:
        raise _corrupt(name, f"expected an Avro container file, found {data[:4]!r} at its start")
    metadata = _read_metadata(reader, limits)
    sync = reader.take(16)
    codec = metadata.get("avro.codec", b"null").decode("ascii", "replace")
    return _Header(codec, sync, _reader_schema(metadata.get("avro.schema", b""), name, limits, expected)), reader


def _frames(reader: "_Cursor", sync: bytes, limits: Limits) -> Iterator[tuple[int, int, bytes]]:
    """The blocks as they are stored: where each begins, its record count and its bytes."""
    name, most_records = reader.name, limits.records(len(reader.data))
    records = 0
    while not reader.at_end():
        start = reader.position
        count, size = reader.long(), reader.long()
        if count < 0 or size < 0:
            raise _corrupt(name, f"a block claims {count} records in {size} bytes")
        if records + count > most_records:
            over_limit(name, "the number of records", records + count, most_records)
        payload = reader.take(size)
        if reader.take(16) != sync:
            raise _corrupt(name, "a block does not end with the sync marker of the file")
        records += count
        yield start, count, payload


def _blocks(
    data: bytes, name: str, limits: Limits, expected: Schema | None, lighten: Lighten | None
) -> Iterator[list[dict[str, Any]]]:
    header, reader = _open(data, name, limits, expected)
    codec, schema = header.codec, header.schema
    allowed = limits.expanded_bytes(len(data))
    kept_bytes = passed = 0
    for _, count, payload in _frames(reader, header.sync, limits):
        try:
            body = decompress(payload, codec, name, allowed - kept_bytes)
        except FormatError as error:
            if error.kind != "limit" or lighten is None or codec != CODEC:
                raise
        else:
            kept_bytes += len(body)
            if block := _decode_block(body, count, schema, name):
                yield block
            continue
        for record, length in _one_by_one(payload, count, schema, name, limits):
            passed += length
            kept_bytes += length - lighten(record)
            if passed > limits.max_decompressed_bytes:
                over_limit(name, "the decompressed size", f"above {limits.max_decompressed_bytes}", limits.max_decompressed_bytes)
            if kept_bytes > allowed:
                over_limit(name, "the decompressed size", f"above {allowed}", allowed)
            yield [record]


def _decode_block(body: bytes, count: int, schema: "_ReaderSchema", name: str) -> list[dict[str, Any]]:
    if count == 0:
        if body:
            raise _corrupt(name, f"a block without records holds {len(body)} bytes")
        return []
    stream = io.BytesIO(_long(count) + body + b"\0")
    block: list[dict[str, Any]] = fastavro.schemaless_reader(stream, schema.array, None)  # type: ignore[assignment]
    if len(block) != count or stream.read(1):
        raise _corrupt(name, f"a block claims {count} records and holds other ones")
    if schema.may_be_null and any(record is None for record in block):
        raise _corrupt(name, "a record is null")
    return block


def _one_by_one(
    payload: bytes, count: int, schema: "_ReaderSchema", name: str, limits: Limits
) -> Iterator[tuple[dict[str, Any], int]]:
    """The records of a block of codec zstandard with their lengths, in a window that holds whole records."""
    source = pa.CompressedInputStream(pa.BufferReader(payload), "zstd")
    window, ended = io.BytesIO(), False
    held = 0
    for _ in range(count):
        while True:
            start = window.tell()
            try:
                record: Any = fastavro.schemaless_reader(window, schema.record, None)
                # A record that ends where the window does may have been cut.
                whole = ended or window.tell() < held
            except (EOFError, IndexError, TypeError, ValueError, StopIteration):
                if ended:
                    raise
                whole = False
            if whole:
                break
            if held - start > limits.max_record_bytes:
                over_limit(name, "the decompressed size of a record", f"above {limits.max_record_bytes}", limits.max_record_bytes)
            chunk = source.read(max(_CHUNK, held - start))
            ended = not chunk
            window = io.BytesIO(window.getvalue()[start:] + chunk)
            held += len(chunk) - start
        if record is None:
            raise _corrupt(name, "a record is null")
        yield record, window.tell() - start
    if window.tell() < held or source.read(1):
        raise _corrupt(name, f"a block claims {count} records and holds other ones")


def _read_metadata(reader: "_Cursor", limits: Limits) -> dict[str, bytes]:
    metadata: dict[str, bytes] = {}
    while (count := reader.long()) != 0:
        if count < 0:
            count = -count
            reader.long()
        if count > limits.max_schema_nodes:
            over_limit(reader.name, "the number of header entries", count, limits.max_schema_nodes)
        for _ in range(count):
            key = reader.take(reader.long()).decode("utf-8")
            if key in metadata:
                raise _corrupt(reader.name, f"the header has {key!r} twice")
            metadata[key] = reader.take(reader.long())
    return metadata


class _Cursor:
    """A bounds-checked reader of the container's framing."""

    __slots__ = ("data", "name", "position")

    def __init__(self, data: bytes, name: str) -> None:
        self.data, self.name, self.position = data, name, 0

    def at_end(self) -> bool:
        return self.position == len(self.data)

    def take(self, size: int) -> bytes:
        end = self.position + size
        if size < 0 or end > len(self.data):
            raise _corrupt(self.name, f"expected {size} more bytes at offset {self.position} of {len(self.data)}")
        result = self.data[self.position : end]
        self.position = end
        return result

    def long(self) -> int:
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > 63:
                raise _corrupt(self.name, f"a number at offset {self.position} is longer than 10 bytes")
        return (value >> 1) ^ -(value & 1)


def _long(value: int) -> bytes:
    """An Avro long: zigzag, then 7 bits per byte, low ones first."""
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def compress(body: memoryview, codec: str, *, zstd_level: int = ZSTD_LEVEL) -> bytes:
    """One block as ``codec`` stores it. See :func:`decompress`."""
    if codec == "zstandard":
        return bytes(pa.Codec("zstd", compression_level=zstd_level).compress(body, asbytes=True))
    if codec == "deflate":
        deflater = zlib.compressobj(wbits=-15)
        return deflater.compress(body) + deflater.flush()
    if codec == "snappy":
        return bytes(pa.Codec("snappy").compress(body, asbytes=True)) + zlib.crc32(body).to_bytes(4, "big")
    assert codec == "null", codec
    return bytes(body)


def decompress(payload: bytes, codec: str, name: str, allowed: int) -> bytes:
    """Decompress one block to at most ``allowed`` bytes; more is refused while it is being read."""
    if codec == "null":
        return payload
    if codec == "zstandard":
        if (size := _zstd_size(payload)) is not None and size <= allowed:
            # In one piece, several times as fast. Several frames, and damage, are left to the stream.
            with suppress(OSError):
                whole: bytes = _ZSTD.decompress(payload, size, asbytes=True)
                return whole
        return _bounded(pa.CompressedInputStream(pa.BufferReader(payload), "zstd"), name, allowed) if payload else b""
    if codec == "deflate":
        inflater = zlib.decompressobj(-15)
        body = inflater.decompress(payload, max(allowed, 1))
        if inflater.unconsumed_tail or (not inflater.eof and len(body) >= allowed):
            over_limit(name, "the decompressed size", f"above {allowed}", allowed)
        # Bytes behind the end are no error: fastavro leaves a part of the zlib checksum there.
        if not inflater.eof:
            raise _corrupt(name, "a deflate block is cut short")
        return body
    if codec == "snappy":
        return _snappy(payload, name, allowed)
    raise FormatError(
        f"{name}: expected the Avro codec null, deflate, snappy or zstandard, found {codec[:40]!r}. Rewrite the file "
        "with one of them, for example by 'manifest.compression' = 'zstd'.",
        kind="unsupported-codec",
    )


def _zstd_size(payload: bytes) -> int | None:
    """The size that a single frame of zstd says its content has; None if it says none. RFC 8878, section 3.1.1."""
    if payload[:4] != _ZSTD_MAGIC or len(payload) < _LONGEST_ZSTD_HEADER:
        return None
    descriptor = payload[4]
    is_single_segment, kind = bool(descriptor & 0x20), descriptor >> 6
    if descriptor & 0x03 or (kind == 0 and not is_single_segment):
        return None
    start = 5 if is_single_segment else 6
    size = int.from_bytes(payload[start : start + (1 << kind)], "little")
    return size + 256 if kind == 1 else size


def _bounded(stream: Any, name: str, allowed: int) -> bytes:
    chunks = []
    left = allowed
    while chunk := stream.read(min(_CHUNK, left + 1)):
        left -= len(chunk)
        if left < 0:
            over_limit(name, "the decompressed size", f"above {allowed}", allowed)
        chunks.append(chunk)
    return b"".join(chunks)


def _snappy(payload: bytes, name: str, allowed: int) -> bytes:
    """Raw snappy, whose first number is the decompressed size, then a CRC-32 of the decompressed bytes."""
    size = shift = 0
    for byte in payload[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if size > allowed:
        over_limit(name, "the decompressed size", size, allowed)
    if len(payload) < 5:
        raise _corrupt(name, "a snappy block is cut short")
    body: bytes = pa.Codec("snappy").decompress(payload[:-4], decompressed_size=size, asbytes=True)
    if zlib.crc32(body) != int.from_bytes(payload[-4:], "big"):
        raise _corrupt(name, "a snappy block does not match its checksum")
    return body


def parsed_record(schema: Schema) -> Schema:
    """The schema of one record of ours as fastavro takes it, without logical types: values are what they are made of."""
    return _parsed_record(_compact(schema))


@lru_cache(maxsize=64)
def _parsed_record(text: str) -> Schema:
    return fastavro.parse_schema(_clean(json.loads(text), "the schema to write", _OWN_SCHEMA_LIMITS)[0])


@lru_cache(maxsize=64)
def _writer_schema(text: str) -> tuple[str, Schema]:
    """The schema's text for the header, and the parsed schema of an array of its records."""
    cleaned, _ = _clean(json.loads(text), "the schema to write", _OWN_SCHEMA_LIMITS)
    return text, fastavro.parse_schema({"type": "array", "items": cleaned})


@dataclass(frozen=True, slots=True)
class _ReaderSchema:
    """The schema that a file's records are read by: all of a block as one array, or one record at a time. ``plain``: not yet
    parsed."""

    plain: Schema
    array: Schema
    record: Schema
    may_be_null: bool


def _reader_schema(text: bytes, name: str, limits: Limits, expected: Schema | None) -> _ReaderSchema:
    """The schema in a file's header, checked."""
    expected_text = None if expected is None else _compact(expected)
    try:
        return _parsed_reader_schema(text, expected_text, limits)
    except FormatError as error:
        raise FormatError(f"{name}: {error.message}", kind=error.kind) from error


@lru_cache(maxsize=64)
def _parsed_reader_schema(text: bytes, expected: str | None, limits: Limits) -> _ReaderSchema:
    """The parsed reader schema, cached: all manifests of a table have one schema."""
    where = "the Avro schema"
    cleaned, record = _clean(parse_json_bounded(text, where, limits), where, limits)
    if expected is not None:
        _check_compatible(record, json.loads(expected), where, "")
    return _ReaderSchema(
        cleaned,
        fastavro.parse_schema({"type": "array", "items": cleaned}),
        fastavro.parse_schema(cleaned),
        cleaned is not record,
    )


def _clean(schema: Schema, where: str, limits: Limits) -> tuple[Schema, Schema]:
    """Check the schema of a file; return it without logical types and attributes, and the top record within."""
    cleaner = _Cleaner(where, limits)
    cleaned = cleaner.clean(schema, 0, namespace="")
    record = cleaned
    if isinstance(cleaned, list):
        records = [branch for branch in cleaned if branch != "null"]
        record = records[0] if len(records) == 1 else None
    if not isinstance(record, dict) or record["type"] != "record":
        raise _corrupt(where, "expected a record, or a union of null and a record")
    return cleaned, record


class _Cleaner:
    def __init__(self, where: str, limits: Limits) -> None:
        self.where, self.limits = where, limits
        self.nodes = 0
        self.named: dict[str, Schema] = {}

    def clean(self, schema: Schema, depth: int, namespace: str, in_union: bool = False) -> Schema:
        self.nodes += 1
        if depth > self.limits.max_depth:
            over_limit(self.where, "the nesting depth", depth, self.limits.max_depth)
        if self.nodes > self.limits.max_schema_nodes:
            over_limit(self.where, "the number of types", self.nodes, self.limits.max_schema_nodes)
        if isinstance(schema, str):
            return self._name(schema, depth, namespace, in_union)
        if isinstance(schema, list):
            if in_union or not schema:
                raise _corrupt(self.where, "a union is empty or directly inside a union")
            return [self.clean(branch, depth + 1, namespace, in_union=True) for branch in schema]
        if not isinstance(schema, dict):
            raise _corrupt(self.where, f"expected a type, found {str(schema)[:60]!r}")
        kind = schema.get("type")
        if kind == "record":
            return self._record(schema, depth, namespace)
        if kind == "array":
            return {"type": "array", "items": self.clean(schema.get("items"), depth + 1, namespace)}
        if kind == "map":
            return {"type": "map", "values": self.clean(schema.get("values"), depth + 1, namespace)}
        if kind == "fixed" and self.limits.max_fixed_bytes:
            return self._fixed(schema, namespace)
        if kind in ("fixed", "enum"):
            raise _corrupt(self.where, f"the type {kind} does not occur in metadata files")
        return self.clean(kind, depth + 1, namespace, in_union)

    def _name(self, schema: str, depth: int, namespace: str, in_union: bool) -> Schema:
        if schema in _PRIMITIVES:
            return schema
        if schema == "null":
            # Outside of a union a null takes no bytes: a block could claim any number of them.
            if not in_union:
                raise _corrupt(self.where, "a type is null outside of a union")
            return schema
        full = schema if "." in schema or not namespace else f"{namespace}.{schema}"
        if full not in self.named:
            raise _corrupt(self.where, f"the type {schema[:80]!r} is unknown, or contains itself")
        # A repeated record is written out again, so that its size counts.
        again = self.named[full]
        return self._fixed(again, namespace) if again["type"] == "fixed" else self._record(again, depth, namespace)

    def _fixed(self, schema: Mapping[str, Any], namespace: str) -> Schema:
        """Bytes of one length, of a name that is used once."""
        name, size = schema.get("name"), schema.get("size")
        if not isinstance(name, str) or not isinstance(size, int) or not 0 < size <= self.limits.max_fixed_bytes:
            raise _corrupt(self.where, f"expected fixed bytes, at most {self.limits.max_fixed_bytes}, found {str(schema)[:80]}")
        declared = schema.get("namespace", namespace)
        self.named[name if "." in name or not declared else f"{declared}.{name}"] = schema
        return {"type": "fixed", "name": f"fixed{self.nodes}", "size": size}

    def _record(self, schema: Mapping[str, Any], depth: int, namespace: str) -> Schema:
        name, fields = schema.get("name"), schema.get("fields")
        if not isinstance(name, str) or not isinstance(fields, list) or not fields:
            raise _corrupt(self.where, "a record has no name or no fields")
        declared = schema.get("namespace", namespace)
        full = name if "." in name or not declared else f"{declared}.{name}"
        inner = full.rpartition(".")[0]
        number = self.nodes
        cleaned: dict[str, Schema] = {}
        for field in fields:
            field_name = field.get("name") if isinstance(field, dict) else None
            if not isinstance(field_name, str) or field_name in cleaned:
                raise _corrupt(self.where, f"a field of {full[:80]!r} has no name or occurs twice")
            cleaned[field_name] = self.clean(field.get("type"), depth + 1, inner)
        # Registered only now: a record that refers to itself is unknown inside itself.
        self.named[full] = schema
        pairs = [{"name": field_name, "type": type_} for field_name, type_ in cleaned.items()]
        return {"type": "record", "name": f"record{number}", "fields": pairs}


def _check_compatible(stored: Schema, expected: Schema, where: str, path: str) -> None:
    """Check that values of the schema ``stored`` are usable where ``expected`` is; nulls are the caller's to check."""
    stored_plain, expected_plain = _without_null(stored), _without_null(expected)
    if isinstance(expected_plain, str):
        family = "integer" if expected_plain in ("int", "long") else expected_plain
        actual = "integer" if stored_plain in ("int", "long") else stored_plain
        if actual != family:
            raise _corrupt(where, f"expected {path or 'the record'} to be {expected_plain}, found {stored_plain}")
        return
    kind = expected_plain["type"]
    if kind not in ("array", "record"):
        _check_compatible(stored, kind, where, path)
        return
    if not isinstance(stored_plain, dict) or stored_plain["type"] != kind:
        raise _corrupt(where, f"expected {path or 'the record'} to be of type {kind}, found {str(stored_plain)[:60]}")
    if kind == "array":
        _check_compatible(stored_plain["items"], expected_plain["items"], where, f"{path}[]")
        return
    fields = {field["name"]: field["type"] for field in stored_plain["fields"]}
    for field in expected_plain["fields"]:
        inner = f"{path}.{field['name']}" if path else field["name"]
        if field["name"] in fields:
            _check_compatible(fields[field["name"]], field["type"], where, inner)
        elif not isinstance(field["type"], list):
            raise _corrupt(where, f"expected a field {inner}, found {sorted(fields)[:40]}")


def _without_null(schema: Schema) -> Schema:
    if isinstance(schema, list):
        branches = [branch for branch in schema if branch != "null"]
        return branches[0] if len(branches) == 1 else schema
    return schema


def _corrupt(name: str, fault: str) -> FormatError:
    return FormatError(f"{name}: {fault}. The file is corrupt, truncated, or not of this kind; restore it from a copy.")
