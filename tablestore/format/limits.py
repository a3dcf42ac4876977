"""How much a metadata file may ask for before it is refused, and the one JSON parser.

A corrupt or hostile file of a few kilobytes must not cost gigabytes or a crash of the interpreter. Every decoder
takes a :class:`Limits`; crossing one raises ``FormatError(kind="limit")`` before the memory is taken.
"""

import json
import re
from dataclasses import dataclass
from typing import NoReturn

from tablestore.errors import FormatError

_JSON_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds for one metadata file. The defaults fit manifests of some million entries.

    ``max_expansion`` compares decompressed with compressed bytes; ``expansion_floor_bytes`` is always allowed, because
    small files of similar records compress very well.
    """

    max_bytes: int = 256 << 20
    max_records: int = 5_000_000
    max_depth: int = 32
    max_schema_nodes: int = 2_000
    max_decompressed_bytes: int = 1 << 30
    max_expansion: int = 200
    expansion_floor_bytes: int = 16 << 20
    max_json_bytes: int = 16 << 20
    max_json_depth: int = 64


DEFAULT_LIMITS = Limits()


def over_limit(name: str, what: str, found: object, allowed: object) -> NoReturn:
    """Raise the error of a crossed limit."""
    raise FormatError(
        f"{name}: {what} is {found}, more than the {allowed} allowed. The file is corrupt or not what it seems; "
        "restore it, or raise the limit if it is genuine.",
        kind="limit",
    )


def parse_json_bounded(data: bytes, name: str, limits: Limits = DEFAULT_LIMITS) -> object:
    """Parse JSON text: UTF-8, bounded in size and depth, no duplicate keys, no NaN, no lone surrogates.

    Raises FormatError naming the file for anything else.
    """
    if len(data) > limits.max_json_bytes:
        over_limit(name, "the size in bytes", len(data), limits.max_json_bytes)
    _check_depth(data, name, limits.max_json_depth)
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


def _check_depth(data: bytes, name: str, max_depth: int) -> None:
    """Bound the nesting without recursion: the C parser would run out of stack first."""
    if data.count(b"[") + data.count(b"{") <= max_depth:
        return
    depth = 0
    for match in _JSON_TOKEN.finditer(data):
        token = match.group()
        if token in (b"[", b"{"):
            depth += 1
            if depth > max_depth:
                over_limit(name, "the nesting depth", f"above {max_depth}", max_depth)
        elif token in (b"]", b"}"):
            depth -= 1


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
