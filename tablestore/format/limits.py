"""Bounds the memory that reading a metadata file may take, and reads and writes all JSON of metadata within these limits.

A corrupt or hostile file of a few kilobytes must not cost gigabytes or crash the interpreter. Every decoder takes a
:class:`Limits`, and raises ``FormatError(kind="limit")`` before it takes more memory.

Writers check too, so that nothing is published that cannot be read: beyond :data:`WRITE_LIMITS` they raise
``InvalidInputError(kind="limit")``. These are stricter, because older tables were written without checks.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NoReturn

from tablestore.errors import FormatError, InvalidInputError

_TEXT = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
_JSON_TOKEN = re.compile(_TEXT + rb"|[\[{]|[\]}]", re.DOTALL)
_JSON_TEXT = re.compile(_TEXT, re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds for one metadata file. The defaults fit manifests of some million entries.

    An Avro file may expand to ``max_expansion`` times its bytes, at least to ``expansion_floor_bytes``: small files of similar
    records compress very well. It may hold a record for each ``record_bytes``, at least ``records_floor``: a name and a digest do
    not compress. Wide bounds that are dropped while reading (see :mod:`tablestore.format.manifest.manifestfile`) count against
    ``max_decompressed_bytes`` only, and a record with them against ``max_record_bytes``.

    A JSON document may hold ``max_json_bytes`` of structure, and ``max_json_text_bytes`` with its texts.
    ``max_fixed_bytes``: how long a value of a fixed length may be in an Avro file; metadata files have none.
    """

    max_bytes: int = 256 << 20
    max_records: int = 5_000_000
    records_floor: int = 100_000
    record_bytes: int = 8
    max_depth: int = 32
    max_schema_nodes: int = 2_000
    max_decompressed_bytes: int = 1 << 30
    max_record_bytes: int = 32 << 20
    max_expansion: int = 200
    expansion_floor_bytes: int = 16 << 20
    max_json_bytes: int = 16 << 20
    max_json_text_bytes: int = 64 << 20
    max_json_depth: int = 256
    max_fixed_bytes: int = 0

    def expanded_bytes(self, size: int) -> int:
        """The most bytes to which an Avro file of ``size`` may expand."""
        return min(self.max_decompressed_bytes, max(self.expansion_floor_bytes, size * self.max_expansion))

    def records(self, size: int) -> int:
        """The most records that an Avro file of ``size`` may hold."""
        return min(self.max_records, max(self.records_floor, size // self.record_bytes))


DEFAULT_LIMITS = Limits()
WRITE_LIMITS = replace(DEFAULT_LIMITS, max_json_text_bytes=16 << 20, max_json_depth=64)


def over_limit(name: str, what: str, value: object, allowed: object) -> NoReturn:
    """Raise the error of a crossed limit."""
    raise FormatError(
        f"{name}: {what} is {value}, more than the {allowed} allowed. The file is corrupt or not what it seems; "
        "restore it, or raise the limit if it is genuine.",
        kind="limit",
    )


def refuse_to_write(name: str, what: str, value: object, allowed: object, way_out: str) -> NoReturn:
    """Raise the error of something that readers would refuse."""
    raise InvalidInputError(
        f"{name}: {what} would be {value}, expected at most {allowed}: readers refuse more. Nothing was written; {way_out}",
        kind="limit",
    )


def json_within_limits(
    content: Mapping[str, object], name: str, *, indent: int | None = None, limits: Limits = WRITE_LIMITS
) -> bytes:
    """The text of a JSON object of ours, which :func:`parse_json_bounded` reads. ``name`` says what it is, for messages.

    Raises InvalidInputError for one that is too large or too deep.
    """
    way_out = "use shorter texts, fewer columns or options, or types that are nested less deep"
    try:
        separators = (",", ":") if indent is None else None
        data = json.dumps(content, indent=indent, separators=separators, ensure_ascii=False).encode("utf-8")
    except RecursionError:
        refuse_to_write(name, "the nesting depth", "far more", limits.max_json_depth, way_out)
    _check_readable(data, name, limits, way_out)
    return data


def _check_readable(data: bytes, name: str, limits: Limits, way_out: str) -> None:
    if len(data) > limits.max_json_text_bytes:
        refuse_to_write(name, "the size in bytes", len(data), limits.max_json_text_bytes, way_out)
    if not _within_depth(data, limits.max_json_depth):
        refuse_to_write(name, "the nesting depth", "more", limits.max_json_depth, way_out)


def parse_json_bounded(data: bytes, name: str, limits: Limits = DEFAULT_LIMITS) -> object:
    """Parse JSON text: UTF-8, bounded in size and depth, no duplicate keys, no NaN, no lone surrogates.

    Raises FormatError naming the file for anything else.
    """
    if len(data) > limits.max_json_bytes:
        if len(data) > limits.max_json_text_bytes:
            over_limit(name, "the size in bytes", len(data), limits.max_json_text_bytes)
        if (structure := len(_JSON_TEXT.sub(b'""', data))) > limits.max_json_bytes:
            over_limit(name, "the size in bytes without texts", structure, limits.max_json_bytes)
    if not _within_depth(data, limits.max_json_depth):
        over_limit(name, "the nesting depth", f"above {limits.max_json_depth}", limits.max_json_depth)
    try:
        value: object = json.loads(data.decode("utf-8"), object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
        if b"\\u" in data:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        raise FormatError(
            f"{name}: expected a JSON document, found {len(data)} bytes that are not one ({error}). The file is "
            "truncated or corrupt; restore it from a copy."
        ) from error
    return value


def _within_depth(data: bytes, max_depth: int) -> bool:
    """True if the nesting is bounded, found without recursion: the C parser would run out of stack first."""
    if data.count(b"[") + data.count(b"{") <= max_depth:
        return True
    depth = 0
    for match in _JSON_TOKEN.finditer(data):
        token = match.group()
        if token in (b"[", b"{"):
            depth += 1
            if depth > max_depth:
                return False
        elif token in (b"]", b"}"):
            depth -= 1
    return True


def _no_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"the key {key!r} occurs twice")
            seen.add(key)
    return result


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")
