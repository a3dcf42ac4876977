"""Plans layers: overlapping files that another engine may read with its own Parquet reader, and the test of which rows count.

    newer   few rows    keys N, of which D lie in more than one of the files
    base    the others  the oldest files; no key lies in two of them

No rows are merged. A row of the base counts unless its key is in N. A row of a newer file counts unless it retracts, or its key is
in D and its sequence number is below those of the newest file with the key.

This holds where the last row of a key hides all older ones, whatever they are, and where sequence numbers order the files. Keys are
one column of whole numbers, for which a bitmap is cheap to look up. A row hides older ones even if it does not pass a filter: so
the keys of the newer files are read whatever the filter says of other columns.

Layers are chosen by metadata alone, so that plans that are made twice come out the same. Then the keys of newer files are read:
at most ``MOST_KEYS`` of 8 bytes. Each of at most ``MOST_LAYERS`` layers has a bitmap of up to ``MOST_RANGE`` bits for N.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tablestore.errors import FormatError
from tablestore.format.binaryrow import decode_row
from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.lsm.keyorder import KeyOrder
from tablestore.lsm.run import Section
from tablestore.store.context import TableContext
from tablestore.store.scan.filepruning import file_pruning
from tablestore.store.scan.splitreader import SplitReader
from tablestore.store.scan.splits import Split
from tablestore.types.datatypes import INTEGER_ROOTS, AtomicType, Field
from tablestore.types.filter.predicate import Predicate, evaluate, keep_only

if TYPE_CHECKING:
    from tablestore.distributed.keybits import KeyBits, Longs, NumberedKeys

# The newer files hold at most this share of the base's rows: reading keys and filtering rows costs less than a merge.
NEWER_SHARE = 1 / 4
MOST_KEYS = 1 << 21
MOST_RANGE = 1 << 27
# Each costs scans of its own.
MOST_LAYERS = 8
# Pairs of newer files are compared.
MOST_NEWER_FILES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketFile:
    """A data file and its directory inside the table."""

    directory: str
    file: DataFileMeta

    @property
    def path(self) -> str:
        """Its path inside the table."""
        return f"{self.directory}/{self.file.file_name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """Overlapping files of one partition: in each of its buckets, newer ones over a base."""

    partition: bytes
    base: tuple[BucketFile, ...]
    newer: tuple[BucketFile, ...]

    @property
    def files(self) -> tuple[BucketFile, ...]:
        """The files of the layer, base and newer ones."""
        return self.base + self.newer


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerPlan:
    """The files of a layer that are read, by paths inside the table, and the test of which rows count.

    ``key`` is the column of the keys. ``hidden``: no row of the base with such a key; None if there are none. ``newest``: of such a
    key only rows of newer files with this sequence number or a higher one; None if no key lies in two of them. ``retractions``:
    whether rows of newer files may retract.
    """

    key: Field
    base: tuple[str, ...]
    newer: tuple[str, ...]
    hidden: "KeyBits | None"
    newest: "NumberedKeys | None"
    retractions: bool


def layer_key(context: TableContext) -> Field | None:
    """The column by which rows of layers are looked up; None for tables that have no layers."""
    schema, settings = context.schema, context.settings
    if not schema.is_keyed or not settings.is_plain or settings.deletion_vectors or len(schema.key_fields) != 1:
        return None
    (field,) = schema.key_fields
    is_number = isinstance(field.type, AtomicType) and field.type.root in INTEGER_ROOTS
    return field if is_number and not field.type.nullable else None


def find_layers(context: TableContext, splits: Sequence[Split], may_read: Callable[[DataFileMeta], bool]) -> tuple[Layer, ...]:
    """The layers of files that ``may_read`` takes; those of the largest bases where they are too many.

    Each section that needs a merge is in one layer or in none. Files of other sections join a base where they hold few rows beside
    it: that saves a scan of their own, and none of their keys is a hidden one.
    """
    if layer_key(context) is None:
        return ()
    order = KeyOrder.of(context.schema.key_fields)
    partition_types = [field.type for field in context.schema.partition_fields]
    by_partition: dict[bytes, tuple[list[BucketFile], list[BucketFile]]] = {}
    unlayered: dict[bytes, list[BucketFile]] = defaultdict(list)
    for split in splits:
        # In buckets of a fixed number a key has its place: it is in no other bucket of the partition.
        if split.total_buckets < 1 or split.deletions:
            continue
        directory = context.paths.bucket(decode_row(split.partition, partition_types), split.bucket)
        for section in split.sections:
            if not all(may_read(file) for file in section.files):
                continue
            if section.needs_merge:
                parts = _layered(section, order)
                for files, part in zip(
                    by_partition.setdefault(split.partition, ([], [])) if parts else (), parts or (), strict=True
                ):
                    files += [BucketFile(directory=directory, file=file) for file in part]
            elif not any(file.may_retract for file in section.files):
                unlayered[split.partition] += [BucketFile(directory=directory, file=file) for file in section.files]
    for partition, (base, _) in by_partition.items():
        if _rows(unlayered[partition]) <= _rows(base) * NEWER_SHARE:
            base += unlayered[partition]
    layers = [Layer(partition=partition, base=tuple(base), newer=tuple(newer)) for partition, (base, newer) in by_partition.items()]
    layers.sort(key=lambda layer: (-_rows(layer.base), layer.partition))
    chosen: list[Layer] = []
    keys = 0
    for layer in layers:
        in_range = _range([bucket_file.file for bucket_file in layer.newer], order) <= MOST_RANGE
        if len(chosen) < MOST_LAYERS and keys + _rows(layer.newer) <= MOST_KEYS and in_range:
            keys += _rows(layer.newer)
            chosen.append(layer)
    return tuple(chosen)


def plan_layer(context: TableContext, layer: Layer, predicate: Predicate | None) -> LayerPlan:
    """Read the keys of a layer's newer files. A predicate leaves out files, and keys that do not pass it; it remains to be applied
    to the rows. Raises FormatError for damaged files, NotFoundError for files that expired meanwhile."""
    key = layer_key(context)
    assert key is not None, "layers have a key"
    context.check_sees_all("reading of files by another engine")
    may_match = file_pruning(context, predicate)
    on_key = keep_only(predicate, (key.name,)) if predicate is not None else None
    reader = SplitReader.whole(context, (key.name,), on_key)
    keyed_files = [(bucket_file, keys) for bucket_file in layer.newer if len(keys := _keys_of(reader, bucket_file, key.name))]
    hidden, newest = (
        _latest([(bucket_file.file.min_sequence_number, keys) for bucket_file, keys in keyed_files])
        if keyed_files
        else (None, None)
    )
    return LayerPlan(
        key=key,
        base=tuple(bucket_file.path for bucket_file in layer.base if may_match(bucket_file.file)),
        newer=tuple(bucket_file.path for bucket_file, _ in keyed_files),
        hidden=hidden,
        newest=newest,
        retractions=any(bucket_file.file.may_retract for bucket_file, _ in keyed_files),
    )


def _latest(files: "Sequence[tuple[int, Longs]]") -> "tuple[KeyBits, NumberedKeys | None]":
    """The keys of files with these least sequence numbers; and those that are in several, with the greatest of the numbers."""
    from tablestore.distributed.keybits import KeyBits, NumberedKeys

    files = sorted(files, key=lambda file: file[0])
    least = min(int(keys[0]) for _, keys in files)
    width = len(files).bit_length()
    # One sort of whole numbers: by key, and of one key by the place of the file. MOST_KEYS and MOST_RANGE are far below 64 bits.
    placed = np.sort(np.concatenate([(keys - least) << width | place for place, (_, keys) in enumerate(files)]))
    keys = (placed >> width) + least
    last = np.append(keys[1:] != keys[:-1], True)
    repeated = last & ~np.append(True, last[:-1])
    if not repeated.any():
        return KeyBits.of(keys), None
    numbers = np.array([number for number, _ in files], dtype=np.int64)[placed[repeated] & ((1 << width) - 1)]
    return KeyBits.of(keys[last]), NumberedKeys.of(keys[repeated], numbers)


def _keys_of(reader: SplitReader, bucket_file: BucketFile, name: str) -> "Longs":
    """The keys of a file for which the reader's predicate is TRUE, in the file's order."""
    parts = [np.empty(0, np.int64)]
    last: int | None = None
    for batch in reader.file_rows(bucket_file.directory, bucket_file.file, (name,), ()):
        keys = batch.column(0).to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
        if len(keys) and ((last is not None and keys[0] <= last) or not (keys[1:] > keys[:-1]).all()):
            raise FormatError(
                f"data file {reader.files.root_uri}/{bucket_file.path} has rows that are not in strictly ascending key order; find "
                "such files with `tablestore verify` and rewrite them",
                kind="unsorted",
            )
        last = int(keys[-1]) if len(keys) else last
        parts.append(keys if reader.predicate is None else keys[evaluate(reader.predicate, batch).to_numpy(zero_copy_only=False)])
    return np.concatenate(parts)


def _layered(section: Section, order: KeyOrder) -> tuple[list[DataFileMeta], list[DataFileMeta]] | None:
    """The base and the newer files of a section; None if it has to be merged."""
    files = sorted(section.files, key=lambda file: (file.min_sequence_number, file.file_name))
    count = _base_size(files, order)
    base, newer = files[:count], files[count:]
    rows = sum(file.row_count for file in base)
    small = newer and sum(file.row_count for file in newer) <= rows * NEWER_SHARE and len(newer) <= MOST_NEWER_FILES
    # Retractions of the base would have to be left out, too: it is compacted, or nothing was deleted.
    if not small or any(file.may_retract for file in base) or any(file.footer_digest is None for file in newer):
        return None
    return (base, newer) if _numbers_order(newer, order) else None


def _base_size(files: Sequence[DataFileMeta], order: KeyOrder) -> int:
    """The number of files, by their sequence numbers, that are a base: disjoint, and older than all others."""
    bounds: list[tuple[Any, Any]] = []
    size, newest = 0, -1
    for position, file in enumerate(files):
        if file.min_sequence_number > newest:
            size = position
        low, high = order(file.min_key), order(file.max_key)
        if any(low <= end and start <= high for start, end in bounds):
            return size
        bounds.append((low, high))
        newest = max(newest, file.max_sequence_number)
    return len(files)


def _numbers_order(files: Sequence[DataFileMeta], order: KeyOrder) -> bool:
    """True if of two files that may share a key, one has the higher sequence numbers throughout."""
    for position, file in enumerate(files):
        for later in files[position + 1 :]:
            if later.min_sequence_number <= file.max_sequence_number and order.overlap(file, later):
                return False
    return True


def _rows(files: Sequence[BucketFile]) -> int:
    return sum(bucket_file.file.row_count for bucket_file in files)


def _range(files: Sequence[DataFileMeta], order: KeyOrder) -> int:
    """The distance from the first key to the last one."""
    bounds: list[Any] = [decode_row(bound, order.types)[0] for file in files for bound in (file.min_key, file.max_key)]
    return int(max(bounds) - min(bounds)) + 1
