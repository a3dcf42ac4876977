"""Builds and parses every file name of a table. All paths are "/"-separated and relative to the table directory.

    schema/schema-<N>  snapshot/snapshot-<N>  snapshot/{LATEST,EARLIEST}  tag/tag-<name>  consumer/consumer-<id>
    changelog/changelog-<N>  branch/branch-<name>/{schema,snapshot,tag,…}
    manifest/{manifest,manifest-list,index-manifest}-<uuid>-<i>           index/index-<uuid>-<i>
    statistics/stat-<uuid>-<i>
    [<key>=<value>/…]bucket-<B>/<prefix><uuid>-<i>.<format>

The uuid of metadata files that we write is made from their content (UUID version 8 over SHA-256), so that a reader can
check them; other writers use random UUIDs (version 4), which are not checked. Hints hold a decimal id as text.
"""

import hashlib
import re

from tablestore.errors import FormatError
from tablestore.types.schema import POSTPONE_BUCKET

# Stored, never renamed.
SCHEMA_DIR = "schema"
SNAPSHOT_DIR = "snapshot"
MANIFEST_DIR = "manifest"
INDEX_DIR = "index"
STATISTICS_DIR = "statistics"
CHANGELOG_DIR = "changelog"
TAG_DIR = "tag"
CONSUMER_DIR = "consumer"
BRANCH_DIR = "branch"
CREATIONS_DIR = "_ctas"  # of a warehouse: the jobs that make tables, and these tables until they have their names
LATEST_HINT = "LATEST"  # in the snapshot directory, like EARLIEST_HINT
EARLIEST_HINT = "EARLIEST"
SCHEMA_PREFIX = "schema-"
SNAPSHOT_PREFIX = "snapshot-"
TAG_PREFIX = "tag-"
CONSUMER_PREFIX = "consumer-"
BRANCH_PREFIX = "branch-"
# The branch whose own files lie in the table itself.
MAIN_BRANCH = "main"
CHANGELOG_PREFIX = "changelog-"
BUCKET_PREFIX = "bucket-"

_MAX_ID = 2**63 - 1
_DECIMAL = re.compile(r"0|[1-9][0-9]{0,18}")
_CONTENT_UUID = re.compile(
    r"(?:manifest-list|manifest|index-manifest|index|stat)-"
    r"([0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})-[0-9]+"
)
_ESCAPED = frozenset([*map(chr, range(0x20)), "\x7f", *"\"#%'*/:=?\\{}[]^"])
_COMPRESSIONS = frozenset({"gz", "gzip", "zst", "zstd", "snappy", "lz4", "lzo", "bz2", "bzip2", "deflate", "xz", "br"})


def snapshot_path(snapshot_id: int) -> str:
    """``snapshot/snapshot-<id>``."""
    return f"{SNAPSHOT_DIR}/{SNAPSHOT_PREFIX}{snapshot_id}"


def parse_snapshot_id(name: str) -> int | None:
    """The id in the last segment of a snapshot path, or None if it is not one."""
    return _parse_id(name, SNAPSHOT_PREFIX)


def schema_path(schema_id: int) -> str:
    """``schema/schema-<id>``."""
    return f"{SCHEMA_DIR}/{SCHEMA_PREFIX}{schema_id}"


def parse_schema_id(name: str) -> int | None:
    """The id in the last segment of a schema path, or None if it is not one."""
    return _parse_id(name, SCHEMA_PREFIX)


def manifest_path(name: str) -> str:
    """The path of a manifest, manifest list or index manifest."""
    return f"{MANIFEST_DIR}/{name}"


def index_path(name: str) -> str:
    """The path of an index file (deletion vectors, hash index)."""
    return f"{INDEX_DIR}/{name}"


def tag_path(tag: str) -> str:
    """``tag/tag-<tag>``."""
    return f"{TAG_DIR}/{TAG_PREFIX}{tag}"


def branch_directory(branch: str) -> str:
    """The directory of a branch's metadata: ``branch/branch-<branch>``."""
    return f"{BRANCH_DIR}/{BRANCH_PREFIX}{branch}"


def changelog_path(snapshot_id: int) -> str:
    """``changelog/changelog-<id>``: what is left of an expired snapshot for readers of changes."""
    return f"{CHANGELOG_DIR}/{CHANGELOG_PREFIX}{snapshot_id}"


def parse_changelog_id(name: str) -> int | None:
    """The id in the last segment of a changelog path, or None if it is not one."""
    return _parse_id(name, CHANGELOG_PREFIX)


def consumer_path(consumer_id: str) -> str:
    """``consumer/consumer-<id>``."""
    return f"{CONSUMER_DIR}/{CONSUMER_PREFIX}{consumer_id}"


def encode_hint(value: int) -> bytes:
    """The content of LATEST or EARLIEST."""
    return str(value).encode("ascii")


def parse_hint(data: bytes) -> int | None:
    """The id in a hint file, or None for a broken hint, which does no harm."""
    try:
        text = data[:32].decode("ascii").strip()
    except UnicodeDecodeError:
        return None
    return _parse_decimal(text)


def content_uuid(data: bytes) -> str:
    """The UUID (version 8) that the SHA-256 of ``data`` makes, in canonical text."""
    digest = bytearray(hashlib.sha256(data).digest()[:16])
    digest[6] = 0x80 | digest[6] & 0x0F
    digest[8] = 0x80 | digest[8] & 0x3F
    text = digest.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def verify_content_name(name: str, data: bytes) -> None:
    """Refuse bytes that ``name`` was not made from. Names of other writers pass."""
    match = _CONTENT_UUID.fullmatch(name.rpartition("/")[2])
    if match is not None and match[1] != (checksum := content_uuid(data)):
        raise FormatError(
            f"{name}: expected content with the checksum in its name, found {len(data)} bytes that give {checksum}. "
            "The file was damaged or replaced after it was written; restore it from a copy.",
            kind="checksum",
        )


def manifest_name(data: bytes, number: int) -> str:
    """The name of a manifest with this content."""
    return f"manifest-{content_uuid(data)}-{number}"


def manifest_list_name(data: bytes, number: int) -> str:
    """The name of a manifest list with this content."""
    return f"manifest-list-{content_uuid(data)}-{number}"


def index_manifest_name(data: bytes, number: int) -> str:
    """The name of an index manifest with this content."""
    return f"index-manifest-{content_uuid(data)}-{number}"


def index_file_name(data: bytes, number: int) -> str:
    """The name of an index file with this content."""
    return f"index-{content_uuid(data)}-{number}"


def statistics_file_name(data: bytes, number: int) -> str:
    """The name of a statistics file with this content."""
    return f"stat-{content_uuid(data)}-{number}"


def data_file_name(uuid: str, number: int, prefix: str, extension: str) -> str:
    """``data-<uuid>-<number>.parquet``, or that of another format."""
    return f"{prefix}{uuid}-{number}.{extension}"


def postponed_prefix(prefix: str) -> str:
    """The prefix of files in a postponed bucket, after ``prefix``, that of the table: ``data--u-<writer>-s-<number>-w-``.

    A compaction replays the files of one prefix (in older engines: of one number) in the order of their creation, and those of
    different ones in any order. So all of ours have the same.
    """
    return f"{prefix}-u-tablestore-s-0-w-"


def file_format_of(name: str) -> str:
    """The format in a data file's name: the text after the last dot, or before a compression suffix."""
    parts = name.rpartition("/")[2].lower().split(".")
    if len(parts) > 2 and parts[-1] in _COMPRESSIONS:
        return parts[-2]
    return parts[-1] if len(parts) > 1 else ""


def check_file_name(name: str, where: str) -> str:
    """Return ``name`` if it is one plain path segment; metadata that says otherwise could reach outside the table."""
    if not name or name in (".", "..") or "/" in name or "\\" in name or "\0" in name or len(name) > 1024:
        raise FormatError(
            f"{where}: expected a plain file name, found {name[:100]!r}. The file is corrupt, or made to reach "
            "outside the table; do not use it."
        )
    return name


def escape_path_name(text: str) -> str:
    """Escape one side of ``key=value`` as Hive does."""
    return "".join(f"%{ord(char):02X}" if char in _ESCAPED else char for char in text)


def bucket_dir(partition: str, bucket: int) -> str:
    """The directory of a bucket under ``partition`` (a result of ``partition_dir``)."""
    name = f"{BUCKET_PREFIX}{'postpone' if bucket == POSTPONE_BUCKET else bucket}"
    return f"{partition}/{name}" if partition else name


def _parse_id(name: str, prefix: str) -> int | None:
    last = name.rpartition("/")[2]
    return _parse_decimal(last[len(prefix) :]) if last.startswith(prefix) else None


def _parse_decimal(text: str) -> int | None:
    if _DECIMAL.fullmatch(text) is None or int(text) > _MAX_ID:
        return None
    return int(text)
