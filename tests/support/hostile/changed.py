"""Makes one file of a warehouse hostile: names that lead out, numbers without bound, other types, damage, links, another's name.

Texts are sealed again where they carry a checksum, so that what reads them gets past it; half of the time, that is.
"""

import json
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tablestore.format.manifest.indexmanifest import decode_index_manifest, encode_index_manifest
from tablestore.format.manifest.manifestfile import decode_manifest, encode_manifest
from tablestore.format.manifest.manifestlist import decode_manifest_list, encode_manifest_list
from tablestore.format.sealed import CHECKSUM_KEY, object_checksum

NONCE = b"0123456789abcdef"
KINDS = {
    "intent": ("_ctas/*/*.json",),
    "snapshot": ("*.db/*/snapshot/snapshot-*",),
    "tag": ("*.db/*/tag/tag-*",),
    "changelog": ("*.db/*/changelog/changelog-*",),
    "consumer": ("*.db/*/consumer/consumer-*",),
    "note": ("*.db/*/tablestore-*/*", "*.db/*/tablestore-*/*/*"),
    "hint": ("*.db/*/snapshot/*EST",),
    "manifest": ("*.db/*/manifest/manifest-*",),
    "index": ("*.db/*/manifest/index-manifest-*", "*.db/*/index/*"),
    "branch": ("*.db/*/branch/*/*/*", "*.db/*/branch/*/*"),
}


def change(warehouse: Path, canary: Path, kind: str, chance: random.Random) -> str:
    """Change one file of a kind; what was done."""
    files = sorted(path for pattern in KINDS[kind] for path in warehouse.glob(pattern) if path.is_file())
    path = chance.choice(files)
    ways: list[Callable[[Path, Path, random.Random], str]] = [_damaged, _linked, _renamed]
    if kind in ("manifest", "index") and path.parent.name == "manifest":
        ways = [*ways, *[_entries] * 6]
    elif path.read_bytes()[:1] == b"{":
        ways = [*ways, *[_object] * 9]
    way = chance.choice(ways)
    return f"{path.relative_to(warehouse)}: {way.__name__} {way(path, canary, chance)}"


def hostile_texts(canary: Path) -> list[str]:
    """Texts in place of names, paths, places and identities."""
    out = f"{'../' * 12}{str(canary)[1:]}"
    return [
        *(f"{out}/precious", str(canary / "precious"), f"file://{canary}/precious", f"{canary}/secret.parquet"),
        *("..", ".", "", "/", "\\..\\..", "a\0b", "a\nb", "x" * 300, "x" * 100_000, "ä/../ö", "%2e%2e%2fetc", "\ud7ff"),
        *("s3://127.0.0.1:9/bucket/x", "http://127.0.0.1:9/x", "../shop.db/precious", "shop.precious", "precious", "os:system"),
    ]


def hostile_values(canary: Path) -> list[Any]:
    """Values in place of whatever a key has."""
    numbers = [-1, 0, 1, 2, 2**31, 2**62, 2**63 - 1, 2**63, -(2**63), 10**400, 1.5, 1e308, True]
    return [*hostile_texts(canary), *numbers, None, [], {}, [[]], {"a": {"b": []}}, [1, "x", None], "1", "-1", "9" * 30]


# ---- objects of JSON


def _object(path: Path, canary: Path, chance: random.Random) -> str:
    data = changed_object(json.loads(path.read_bytes()), canary, chance)
    path.write_bytes(data)
    return f"{data[:300]!r}"


def changed_object(content: Any, canary: Path, chance: random.Random) -> bytes:
    """The text of an object in which some keys, values and types are others."""
    content = json.loads(json.dumps(content))
    for _ in range(chance.choice([1, 1, 2, 4])):
        places = list(_places(content))
        if not places:
            break
        holder, key = chance.choice(places)
        value = chance.choice(hostile_values(canary))
        match chance.randrange(8):
            case 0 if isinstance(holder, dict):
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[str(value)[:200]] = holder[key]
            case _:
                holder[key] = value
    if chance.random() < 0.7:
        _seal(content)
    data = json.dumps(content).encode("utf-8", "surrogatepass")
    match chance.randrange(40):
        case 0:
            return data[:-1] + b"," + data[1:]  # twice
        case 1:
            return data.replace(b"1", b"1e999").replace(b"7", b"NaN")
        case 2:
            return data[:-1] + b',"x":' + b"[" * 100_000
        case _:
            return data


def _places(content: Any) -> Iterator[tuple[Any, Any]]:
    keys = list(content) if isinstance(content, dict) else list(range(len(content)))
    for key in keys:
        yield content, key
        if isinstance(content[key], dict | list):
            yield from _places(content[key])


def _seal(content: dict[str, Any]) -> None:
    try:
        if CHECKSUM_KEY in content:
            del content[CHECKSUM_KEY]
            content[CHECKSUM_KEY] = object_checksum(content)
        elif isinstance(content.get("properties"), dict) and CHECKSUM_KEY in content["properties"]:
            del content["properties"][CHECKSUM_KEY]
            kept = {key: value for key, value in content.items() if key not in ("tagCreateTime", "tagTimeRetained")}
            content["properties"][CHECKSUM_KEY] = object_checksum(kept)
    except (TypeError, UnicodeError):
        pass


# ---- manifests and their lists


def _entries(path: Path, canary: Path, chance: random.Random) -> str:
    """Other entries under the same name, which is no checksum any more: every snapshot that names the file names the new one."""
    data, name = path.read_bytes(), path.name
    texts, numbers = hostile_texts(canary), [-(2**31), -1, 0, 1, 7, 2**31 - 1]
    what = chance.choice(["name", "extra", "external", "number", "partition", "double", "vector"])
    text, number = chance.choice(texts), chance.choice(numbers)
    if name.startswith("manifest-list-"):
        lists = decode_manifest_list(data, name)
        made = encode_manifest_list(
            [replace(one, **({"file_name": text} if what != "number" else {"file_size": number})) for one in lists]
            if what != "double"
            else [*lists, *lists],
            NONCE,
        )
    elif name.startswith("index-manifest-"):
        indexes = decode_index_manifest(data, name)
        made = encode_index_manifest([_index(one, what, text, number) for one in indexes], NONCE)
    else:
        entries = decode_manifest(data, name)
        made = encode_manifest([_entry(one, what, text, number) for one in entries for _ in range(1 + (what == "double"))], NONCE)
    _published(path, made)
    return f"{what} {text[:60]!r} {number}"


def _index(entry: Any, what: str, text: str, number: int) -> Any:
    match what:
        case "name":
            return replace(entry, file_name=text)
        case "external":
            return replace(entry, external_path=text)
        case "number":
            return replace(entry, file_size=abs(number), bucket=number, row_count=number)
        case "partition":
            return replace(entry, partition=text.encode("utf-8", "surrogatepass")[:64] + b"\xff" * 16)
        case "vector" if entry.deletion_vectors:
            return replace(
                entry, deletion_vectors=tuple(replace(one, data_file=text, length=number) for one in entry.deletion_vectors)
            )
        case _:
            return entry


def _entry(entry: Any, what: str, text: str, number: int) -> Any:
    match what:
        case "name":
            return replace(entry, file=replace(entry.file, file_name=text))
        case "extra":
            return replace(entry, file=replace(entry.file, extra_files=(text,)))
        case "external":
            return replace(entry, file=replace(entry.file, external_path=text))
        case "number":
            changed = replace(entry.file, file_size=number, row_count=number, level=number, schema_id=number)
            return replace(entry, bucket=number, total_buckets=number, file=changed)
        case "partition":
            return replace(entry, partition=text.encode("utf-8", "surrogatepass")[:64] + b"\xff" * 16)
        case _:
            return entry


def _published(path: Path, data: bytes) -> None:
    """Give content another name than its checksum, and name it wherever the old one was named."""
    name, kind = path.name, path.name.rpartition("-")[0][:-36]
    other = f"{kind}0f0e0d0c-0b0a-4908-8706-050403020100-0"
    path.with_name(other).write_bytes(data)
    table = path.parent.parent
    if kind == "manifest-":
        for held in table.glob("manifest/manifest-list-*"):
            lists = decode_manifest_list(held.read_bytes(), held.name)
            if any(one.file_name == name for one in lists):
                made = [replace(one, file_name=other) if one.file_name == name else one for one in lists]
                _published(held, encode_manifest_list(made, NONCE))
        return
    for held in [*table.glob("snapshot/snapshot-*"), *table.glob("tag/tag-*"), *table.glob("changelog/*")]:
        text = held.read_text()
        if name in text:
            content = json.loads(text.replace(name, other))
            _seal(content)
            held.write_text(json.dumps(content))


# ---- files as such


def _damaged(path: Path, canary: Path, chance: random.Random) -> str:
    data = bytearray(path.read_bytes())
    way = chance.choice(["cut", "flip", "noise", "empty", "large", "deep", "insert"])
    at = chance.randrange(len(data) + 1)
    match way:
        case "cut":
            del data[at:]
        case "flip":
            for _ in range(1 + len(data) // 100):
                if data:
                    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        case "noise":
            data[:] = chance.randbytes(chance.choice([1, 16, 1000]))
        case "empty":
            data.clear()
        case "large":
            data[at:at] = b"[1]," * 2_500_000
        case "deep":
            data[:] = b'{"a":' * 100_000
        case _:
            data[at:at] = chance.choice(hostile_texts(canary)).encode("utf-8", "surrogatepass")[:400]
    path.write_bytes(data)
    return way


def _linked(path: Path, canary: Path, chance: random.Random) -> str:
    """The file, or the folder that holds it, is a link: out of the warehouse, to another table, to itself."""
    place = path if chance.random() < 0.4 else path.parent
    precious = next(parent for parent in path.parents if parent.name == "wh") / "shop.db" / "precious"
    target = chance.choice([canary, canary / "precious", precious, precious / "snapshot", place, Path("/nowhere"), Path("..")])
    moved = place.with_name(f"{place.name}.moved")
    os.rename(place, moved)
    place.symlink_to(target)
    return f"-> {target}"


def _renamed(path: Path, canary: Path, chance: random.Random) -> str:
    """The file under a name that is nobody's, or that says something else."""
    stem = path.name.partition("-")[0]
    ends = ["99999999999999999999999", "-1", "0", "²", "..", "a b", "ä", "9223372036854775807", "007", "x" * 200, "%2e%2e", "a\nb"]
    name = f"{stem}-{chance.choice(ends)}"
    made = path.with_name(name)
    if not made.exists():
        made.write_bytes(path.read_bytes())
    return repr(name)[:80]
