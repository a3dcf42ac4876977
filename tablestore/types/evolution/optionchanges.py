"""Decides which options an alteration may change, and finds the options that name a column.

    never           the identity of the table: uuid, path, kind, keys and partitioning
    before writes   where files lie: directories, names of partitions; older snapshots need them too
    while empty     the layout of the stored files: buckets, row kinds, deletion vectors
    while folded    how versions of a key combine, and which commits write changelog files: the store checks these
    always          everything else

Options that name columns follow a rename, and keep a column from being dropped while they name it.
"""

from collections.abc import Collection, Iterator, Mapping

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.names import split_names
from tablestore.options import (
    AGGREGATION_REMOVE_RECORD,
    BUCKET,
    BUCKET_FUNCTION,
    BUCKET_KEY,
    CHANGE_TRACKING,
    CHECK_PREFIX,
    CLUSTERING_COLUMNS,
    DATA_FILE_PATH_DIRECTORY,
    DEFAULT_FUNCTION,
    DELETION_VECTORS_ENABLED,
    FIELDS_PREFIX,
    KEY_CONSTRAINT,
    PARTIAL_UPDATE_REMOVE_RECORD,
    PARTIAL_UPDATE_REMOVE_RECORD_GROUP,
    PARTITION_DEFAULT_NAME,
    PARTITION_LEGACY_NAME,
    ROWKIND_FIELD,
    SEQUENCE_FIELD,
    SEQUENCE_GROUP,
    TABLE_OPTIONS,
    TYPE,
    UNTRACKED_PARTITIONS,
    combines_rows,
    is_check,
    is_materialized,
    option_text,
    validate_options,
    with_options,
)
from tablestore.types.evolution.schemachanges import SetOption
from tablestore.types.partitionspec import parse_partition_specs, partition_values, print_partition_specs
from tablestore.types.schema import TableSchema

_NEVER = (
    *("path", TYPE.key, "primary-key", "partition"),
    *(KEY_CONSTRAINT, "tablestore.table-uuid", "tablestore.replaces-after-snapshot"),
)
# They make the paths of files. Files of older snapshots and tags are found by the newest options.
_WHILE_UNWRITTEN = (DATA_FILE_PATH_DIRECTORY.key, PARTITION_DEFAULT_NAME.key, PARTITION_LEGACY_NAME.key)
_WHILE_EMPTY = (
    BUCKET_KEY.key,
    BUCKET_FUNCTION.key,
    ROWKIND_FIELD.key,
    DELETION_VECTORS_ENABLED.key,
    AGGREGATION_REMOVE_RECORD.key,
    PARTIAL_UPDATE_REMOVE_RECORD.key,
    PARTIAL_UPDATE_REMOVE_RECORD_GROUP.key,
)
# Options that list columns. The last belongs to other engines and is only kept.
_COLUMN_LISTS = (
    BUCKET_KEY.key,
    SEQUENCE_FIELD.key,
    ROWKIND_FIELD.key,
    PARTIAL_UPDATE_REMOVE_RECORD_GROUP.key,
    CLUSTERING_COLUMNS.key,
    "record-level.time-field",
)


def check_never_changed(key: str) -> None:
    """Refuse changes of the table's identity and of its constraints. Raises UnsupportedError, InvalidInputError."""
    if key in _NEVER:
        raise UnsupportedError(
            f"the option {key!r} says which table this is and cannot be altered; create another table and copy the rows into it",
            kind="immutable-option",
        )
    if is_check(key):
        name = key.removeprefix(CHECK_PREFIX)
        raise InvalidInputError(
            f"the option {key!r:.100} is where a constraint is kept, which the rows of the table are compared with first: add it "
            f"with AddCheck({name!r}, condition), drop it with DropCheck({name!r}) (in SQL ALTER TABLE … ADD CONSTRAINT … CHECK "
            "(…), DROP CONSTRAINT …)",
            kind="invalid-option",
        )


def with_option(schema: TableSchema, change: SetOption) -> dict[str, str]:
    """The options with one set, in all spellings; that of a partition joins the list of exceptions. Raises InvalidInputError."""
    value = option_text(change.value)
    if not isinstance(value, str):
        # Says what it should be.
        validate_options({change.key: value})
    options = dict(schema.options)
    if change.partition is None:
        return with_options(options, {change.key: value})
    if change.key != CHANGE_TRACKING.key:
        raise InvalidInputError(
            f"the option {change.key!r} belongs to the table and cannot be set for a partition; only {CHANGE_TRACKING.key} can",
            kind="invalid-option",
        )
    if not isinstance(change.partition, Mapping) or not change.partition:
        raise InvalidInputError(
            f"expected a partition such as {{'day': 'mon'}}, found {change.partition!r:.100}; leave it out to mean the table",
            kind="partition",
        )
    spec = partition_values(schema, change.partition)
    tracks = CHANGE_TRACKING.parse(value)
    if tracks and not CHANGE_TRACKING.parse(options.get(CHANGE_TRACKING.key, "true")):
        raise InvalidInputError(
            f"partition {spec} cannot be tracked while {CHANGE_TRACKING.key} is false for the whole table; set that to true, and "
            "to false for the partitions that are to stay untracked",
            kind="invalid-option",
        )
    specs = parse_partition_specs(schema, options.pop(UNTRACKED_PARTITIONS.key, None))
    specs = specs.without_spec(spec) if tracks else specs.with_spec(spec)
    if specs.specs:
        options[UNTRACKED_PARTITIONS.key] = print_partition_specs(schema, specs)
    return options


def check_against_data(old: Mapping[str, str], new: Mapping[str, str], *, has_data: bool, was_written: bool) -> None:
    """Refuse changes that contradict stored files: of the newest snapshot if the table ``has_data``, of older ones if it
    ``was_written``. Raises UnsupportedError."""
    if was_written:
        _refuse(old, new, _WHILE_UNWRITTEN, "once the table was written: it says where the files of all snapshots and tags lie")
    if not has_data:
        return
    before, after = _value(old, BUCKET.key), _value(new, BUCKET.key)
    if before != after:
        fixed = isinstance(before, int) and isinstance(after, int) and before > 0 and after > 0
        rescaling = (
            f"table.rescale({after}) (in SQL CALL sys.rescale) alters the option and overwrites every partition with its own rows"
        )
        if is_materialized(new):
            beside = f"build {_beside(new, BUCKET.key)}"
            way_out = f"{rescaling}; or {beside}" if fixed else f"Only a fixed number can become another one: {beside}"
        elif fixed:
            way_out = f"Rescale by INSERT OVERWRITE instead: {rescaling}"
        else:
            way_out = (
                "Only a fixed number can become another one (INSERT OVERWRITE, table.rescale): create a table with the buckets "
                "that you want and copy the rows into it"
            )
        raise UnsupportedError(
            f"bucket cannot be altered from {old.get(BUCKET.key, 'unset')} to {new.get(BUCKET.key, 'unset')} while the table holds "
            f"data: the files that are there lie in the old buckets. {way_out}",
            kind="rescale-needed",
        )
    _refuse(old, new, _WHILE_EMPTY, "while the table holds data: it says what the files that are there mean")


def _refuse(old: Mapping[str, str], new: Mapping[str, str], keys: tuple[str, ...], why: str) -> None:
    for key in keys:
        if _value(old, key) != _value(new, key):
            copied = "Create a table with the new value and copy the rows into it"
            raise UnsupportedError(
                f"the option {key!r} cannot be altered from {old.get(key, 'unset')!r} to {new.get(key, 'unset')!r} {why}. "
                f"{f'Build {_beside(new, key)}' if is_materialized(new) else copied}",
                kind="immutable-option",
            )


def _beside(options: Mapping[str, str], key: str) -> str:
    """The hint how a materialized table gets an option that its files depend on."""
    with_text = f"WITH ('{key}' = '{options[key]}') " if key in options else ""
    return f"such a version beside the table: ALTER MATERIALIZED TABLE … STAGE {with_text}AS query, then PROMOTE"


def touches_layout(old: Mapping[str, str], new: Mapping[str, str]) -> bool:
    """True if :func:`check_against_data` could refuse the change."""
    return any(_value(old, key) != _value(new, key) for key in (BUCKET.key, *_WHILE_EMPTY, *_WHILE_UNWRITTEN))


def naming_options(options: Mapping[str, str], column: str) -> Iterator[str]:
    """The keys of the options that name a column."""
    for key, value in options.items():
        keyed = key.startswith(FIELDS_PREFIX) and column in _names_in_key(key)
        listed = (key in _COLUMN_LISTS or _is_group(key)) and column in split_names(value)
        if keyed or listed:
            yield key


def renamed_options(options: Mapping[str, str], old: str, new: str) -> dict[str, str]:
    """The options after a column was renamed. Raises InvalidInputError where the new name cannot stand in one."""
    renamed: dict[str, str] = {}
    for key, value in options.items():
        if key.startswith(FIELDS_PREFIX) and old in _names_in_key(key):
            if "," in new:
                raise _cannot_hold(key, new)
            names, _, suffix = key.removeprefix(FIELDS_PREFIX).rpartition(".")
            # A single column may hold commas of its own; then it is not a list.
            listed = [new] if names == old else [new if name == old else name for name in split_names(names)]
            renamed_key = f"{FIELDS_PREFIX}{','.join(listed)}.{suffix}"
        else:
            renamed_key = key
        if (key in _COLUMN_LISTS or _is_group(key)) and old in split_names(value):
            if "," in new:
                raise _cannot_hold(key, new)
            value = ",".join(new if name == old else name for name in split_names(value))
        renamed[renamed_key] = value
    return renamed


def newly_combined(before: Mapping[str, str], after: Mapping[str, str], columns: Collection[str]) -> set[str]:
    """The keys of options, set for the first time, that say how versions of these columns combine."""
    added = {key: value for key, value in after.items() if combines_rows(key) and key not in before}
    return {
        key
        for key, value in added.items()
        if key == DEFAULT_FUNCTION or any(list(naming_options({key: value}, column)) for column in columns)
    }


def without_column(options: Mapping[str, str], column: str) -> dict[str, str]:
    """The options without those of ``fields.<column>.…`` that are about this column alone."""
    return {key: value for key, value in options.items() if _key_names(key) != column or _is_group(key)}


def _cannot_hold(key: str, name: str) -> InvalidInputError:
    return InvalidInputError(
        f"the option {key!r} names this column, and lists columns by commas: {name!r} cannot stand there; choose a "
        "name without one",
        kind="invalid-name",
    )


def _names_in_key(key: str) -> tuple[str, ...]:
    """The columns of ``fields.<columns>.<what>``, and all of them as the name of one."""
    names = _key_names(key)
    return tuple(dict.fromkeys((names, *split_names(names)))) if names else ()


def _key_names(key: str) -> str:
    names, _, _suffix = key.removeprefix(FIELDS_PREFIX).rpartition(".") if key.startswith(FIELDS_PREFIX) else ("", "", "")
    return names


def _is_group(key: str) -> bool:
    return key.startswith(FIELDS_PREFIX) and key.endswith("." + SEQUENCE_GROUP)


def _value(options: Mapping[str, str], key: str) -> object:
    """The value of an option, its default if it is not set."""
    option = TABLE_OPTIONS[key]
    text = options.get(key)
    return option.default if text is None else option.parse(text)
