"""Random tables and a plain model of them: what the oracles and the engine are given, and what they must return.

Everything is drawn from one ``random.Random(seed)``; a failing test prints its seed. Rows are in the encoding of
``canonical.py``. The model is a dict (keyed tables) or a list (append tables), on purpose without any cleverness.
"""

import datetime
import json
import random
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from canonical import Column, Row

# Every type that a schema file can name; nested ones below. The value of TIME is milliseconds of the day whatever p is.
ATOMIC_TYPES: tuple[str, ...] = (
    "BOOLEAN",
    "TINYINT",
    "SMALLINT",
    "INT",
    "BIGINT",
    "FLOAT",
    "DOUBLE",
    "DECIMAL(5, 2)",
    "DECIMAL(9, 0)",
    "DECIMAL(18, 4)",
    "DECIMAL(19, 6)",
    "DECIMAL(38, 10)",
    "CHAR(8)",
    "VARCHAR(20)",
    "STRING",
    "BINARY(6)",
    "VARBINARY(12)",
    "BYTES",
    "DATE",
    "TIME(0)",
    "TIME(3)",
    "TIMESTAMP(0)",
    "TIMESTAMP(3)",
    "TIMESTAMP(6)",
    "TIMESTAMP(9)",
    "TIMESTAMP(0) WITH LOCAL TIME ZONE",
    "TIMESTAMP(3) WITH LOCAL TIME ZONE",
    "TIMESTAMP(6) WITH LOCAL TIME ZONE",
    "TIMESTAMP(9) WITH LOCAL TIME ZONE",
)


def nested_types() -> tuple[dict[str, Any], ...]:
    """Constructed types, one in another. Field ids are given out by ``number_fields``."""
    row = {"type": "ROW", "fields": [{"name": "x", "type": "INT"}, {"name": "y", "type": "STRING"}]}
    return (
        {"type": "ARRAY", "element": "INT"},
        {"type": "ARRAY", "element": {"type": "ARRAY", "element": "STRING"}},
        {"type": "MAP", "key": "STRING NOT NULL", "value": "DOUBLE"},
        {"type": "MAP", "key": "INT NOT NULL", "value": {"type": "ARRAY", "element": "DECIMAL(20, 3)"}},
        row,
        {"type": "ARRAY", "element": row},
        {"type": "ROW", "fields": [{"name": "r", "type": row}, {"name": "t", "type": "TIMESTAMP(6)"}]},
    )


def number_fields(columns: Sequence[Column]) -> list[Column]:
    """The columns with ids on the fields of nested rows, in pre-order after their column, as a schema file has them."""
    counter = 0

    def take() -> int:
        nonlocal counter
        counter += 1
        return counter - 1

    def number(kind: Any) -> Any:
        if isinstance(kind, str):
            return kind
        numbered = dict(kind)
        for part in ("element", "key", "value"):
            if part in numbered:
                numbered[part] = number(numbered[part])
        if "fields" in numbered:
            numbered["fields"] = [{"id": take(), "name": f["name"], "type": number(f["type"])} for f in kind["fields"]]
        return numbered

    result = []
    for column in columns:
        take()
        result.append({"name": column["name"], "type": number(column["type"])})
    return result


# ---- values --------------------------------------------------------------------------------------------------------

_LETTERS = ["a", "b", "Z", "0", " ", "é", "ß", "中", "'", '"', "\\", "/", "=", "%", "𝄞", "\n"]


def random_value(rng: random.Random, kind: Any, *, null_rate: float = 0.15) -> Any:
    """A value of a type, canonical; null sometimes unless the type is NOT NULL. Edge values are frequent."""
    text = kind if isinstance(kind, str) else kind["type"]
    if not text.endswith(" NOT NULL") and rng.random() < null_rate:
        return None
    base = re.match(r"[A-Z]+", text).group()  # type: ignore[union-attr]
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    return _MAKERS[base](rng, kind, numbers)


def _integer(bits: int) -> Callable[..., int]:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def make(rng: random.Random, kind: Any, numbers: list[int]) -> int:
        return rng.choice([low, -1, 0, 1, high, rng.randint(low, high), rng.randint(low, high)])

    return make


def _float(rng: random.Random, kind: Any, numbers: list[int]) -> Any:
    return rng.choice([0.0, 1.5, -2.25, "NaN", "Infinity", "-Infinity", struct.unpack("f", struct.pack("f", rng.gauss(0, 1e6)))[0]])


def _double(rng: random.Random, kind: Any, numbers: list[int]) -> Any:
    return rng.choice([0.0, 0.1, -1e300, 5e-324, "NaN", "Infinity", "-Infinity", rng.gauss(0, 1e6), rng.random()])


def _decimal(rng: random.Random, kind: Any, numbers: list[int]) -> str:
    precision, scale = numbers
    limit = 10**precision - 1
    unscaled = rng.choice([0, 1, -1, limit, -limit, rng.randint(-limit, limit), rng.randint(-limit, limit)])
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    body = digits if scale == 0 else f"{digits[:-scale]}.{digits[-scale:]}"
    return f"-{body}" if unscaled < 0 else body


def _string(rng: random.Random, kind: Any, numbers: list[int]) -> str:
    longest = min(numbers[0] if numbers else 30, 30)
    return "".join(rng.choice(_LETTERS) for _ in range(rng.randint(0, longest)))


def _char(rng: random.Random, kind: Any, numbers: list[int]) -> str:
    return "".join(rng.choice("abcXYZ019") for _ in range(numbers[0]))


def _bytes(rng: random.Random, kind: Any, numbers: list[int]) -> str:
    return rng.randbytes(rng.randint(0, min(numbers[0] if numbers else 30, 30))).hex()


def _binary(rng: random.Random, kind: Any, numbers: list[int]) -> str:
    return rng.randbytes(numbers[0]).hex()


def _date(rng: random.Random, kind: Any, numbers: list[int]) -> str:
    days = rng.choice([1, 719_163, 719_162, 3_652_059, rng.randint(600_000, 800_000), rng.randint(700_000, 750_000)])
    return datetime.date.fromordinal(days).isoformat()


def _time(rng: random.Random, kind: Any, numbers: list[int]) -> str:
    millis = rng.choice([0, 86_399_000, rng.randrange(86_400) * 1000])
    if numbers[0] >= 3:
        millis += rng.randrange(1000)
    return f"{millis // 3_600_000:02d}:{millis // 60_000 % 60:02d}:{millis // 1000 % 60:02d}.{millis % 1000:03d}"


def _timestamp(rng: random.Random, kind: str, numbers: list[int]) -> str:
    precision = numbers[0] if numbers else 6
    # Nanoseconds in 64 bits reach from 1677 to 2262; the others from year 1 to 9999.
    days = [719_162, 719_163, rng.randint(700_000, 760_000), rng.randint(630_000, 820_000)]
    date = datetime.date.fromordinal(rng.choice(days if precision > 6 else [*days, 1, 3_652_058, 300_000]))
    second = rng.choice([0, 86_399, rng.randrange(86_400)])
    fraction = rng.choice([0, 10**precision - 1, rng.randrange(10**precision)])
    digits = str(fraction).rjust(precision, "0").ljust(9, "0") if precision else "0" * 9
    clock = f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
    zone = "Z" if "WITH LOCAL TIME ZONE" in kind else ""
    return f"{date.isoformat()}T{clock}.{digits if precision > 6 else digits[:6]}{zone}"


def _array(rng: random.Random, kind: Any, numbers: list[int]) -> list[Any]:
    return [random_value(rng, kind["element"]) for _ in range(rng.choice([0, 1, 2, 5]))]


def _map(rng: random.Random, kind: Any, numbers: list[int]) -> list[Any]:
    entries = {
        json.dumps(key): [key, random_value(rng, kind["value"])]
        for key in (random_value(rng, kind["key"]) for _ in range(rng.choice([0, 1, 2, 5])))
    }
    return list(entries.values())


def _row(rng: random.Random, kind: Any, numbers: list[int]) -> Row:
    return {part["name"]: random_value(rng, part["type"]) for part in kind["fields"]}


_MAKERS: dict[str, Callable[..., Any]] = {
    "BOOLEAN": lambda rng, kind, numbers: rng.random() < 0.5,
    "TINYINT": _integer(8),
    "SMALLINT": _integer(16),
    "INT": _integer(32),
    "BIGINT": _integer(64),
    "FLOAT": _float,
    "DOUBLE": _double,
    "DECIMAL": _decimal,
    "CHAR": _char,
    "VARCHAR": _string,
    "STRING": _string,
    "BINARY": _binary,
    "VARBINARY": _bytes,
    "BYTES": _bytes,
    "DATE": _date,
    "TIME": _time,
    "TIMESTAMP": _timestamp,
    "ARRAY": _array,
    "MAP": _map,
    "ROW": _row,
}


# ---- tables --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TableSpec:
    """A table to create."""

    columns: list[Column]
    primary_key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    options: dict[str, str] = field(default_factory=dict)

    def type_of(self, column: str) -> Any:
        """The Paimon type of a column."""
        return next(c["type"] for c in self.columns if c["name"] == column)


@dataclass
class Model:
    """What a table must contain after each snapshot."""

    spec: TableSpec
    rows: dict[str, Row] = field(default_factory=dict)
    at: dict[int, list[Row]] = field(default_factory=dict)

    def apply(self, rows: Sequence[Row], kinds: Sequence[str] | None = None) -> None:
        """Applies rows in order: later ones win, -D removes. Append tables keep them all."""
        for position, row in enumerate(rows):
            if not self.spec.primary_key:
                self.rows[str(len(self.rows))] = row
                continue
            key = json.dumps([row[name] for name in self.spec.primary_key])
            if kinds is not None and kinds[position] in ("-D", "-U"):
                self.rows.pop(key, None)
            else:
                self.rows[key] = row

    def snapshot(self, snapshot_id: int) -> None:
        """Remembers the present content as that of a snapshot."""
        self.at[snapshot_id] = list(self.rows.values())

    def contents(self) -> list[Row]:
        """The rows now."""
        return list(self.rows.values())


def all_type_columns() -> list[Column]:
    """A column ``c<n>`` for every type."""
    return [{"name": f"c{i}", "type": kind} for i, kind in enumerate([*ATOMIC_TYPES, *nested_types()])]


def random_rows(rng: random.Random, columns: Sequence[Column], count: int) -> list[Row]:
    """Rows of random values."""
    return [{column["name"]: random_value(rng, column["type"]) for column in columns} for _ in range(count)]


# ---- random tables and histories -----------------------------------------------------------------------------------

SHAPES = ("keyed", "keyed-partitioned", "append", "append-partitioned", "append-bucketed")

# Strings that a partition directory has to escape, blank ones that share a directory with null, and plain ones.
_PARTITIONS: dict[str, list[Any]] = {
    "STRING": ["a", "b", "a=b/c d%", "é中", "", " ", "x:y*z?", "2024-01-01"],
    "INT": [0, 1, -7, 2_147_483_647],
    "DATE": ["2024-01-01", "1969-12-31", "2000-02-29"],
    "BOOLEAN": [True, False],
}
_KEY_TYPES = ("INT", "BIGINT", "STRING", "DATE", "SMALLINT", "DECIMAL(18, 4)", "TIMESTAMP(3)", "VARCHAR(20)")


def random_spec(
    rng: random.Random,
    shape: str,
    *,
    types: Sequence[Any] = (),
    value_columns: int = 7,
    options: dict[str, str] | None = None,
) -> TableSpec:
    """A table of a shape, with key and partition columns and value columns of random types out of ``types``."""
    pool = list(types) or [*ATOMIC_TYPES, *nested_types()]
    columns: list[Column] = []
    primary_key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    chosen = dict(options or {})
    if "partitioned" in shape:
        # A key column is never null, so a partition column that is part of the key is not either.
        kind = rng.choice(sorted(_PARTITIONS)) + (" NOT NULL" if shape == "keyed-partitioned" else "")
        columns.append({"name": "part", "type": kind})
        partition_by = ("part",)
    if shape.startswith("keyed"):
        keys = [f"k{i}" for i in range(rng.choice([1, 1, 2]))]
        columns += [{"name": name, "type": rng.choice(_KEY_TYPES) + " NOT NULL"} for name in keys]
        primary_key = (*partition_by, *keys)
        chosen.setdefault("bucket", rng.choice(["1", "2", "3"]))
    elif shape == "append-bucketed":
        columns.append({"name": "k0", "type": rng.choice(["INT", "STRING", "BIGINT"])})
        chosen |= {"bucket": rng.choice(["2", "3"]), "bucket-key": "k0"}
    else:
        chosen.setdefault("bucket", "-1")
    columns += [{"name": f"v{i}", "type": kind} for i, kind in enumerate(rng.choices(pool, k=value_columns))]
    rng.shuffle(columns)
    return TableSpec(number_fields(columns), primary_key, partition_by, chosen)


@dataclass(frozen=True)
class Batch:
    """The rows of one commit, in order; ``kinds`` is None where all are additions."""

    rows: list[Row]
    kinds: list[str] | None


class History:
    """Random commits to one table. Keys and partitions come from small pools, so that commits overlap."""

    def __init__(self, rng: random.Random, spec: TableSpec, *, keys: int = 25) -> None:
        self._rng = rng
        self._spec = spec
        self._partitions = {name: self._partition_values(name) for name in spec.partition_by}
        key_columns = [name for name in spec.primary_key if name not in spec.partition_by]
        self._keys = [{name: random_value(rng, spec.type_of(name)) for name in key_columns} for _ in range(keys)]

    def _partition_values(self, name: str) -> list[Any]:
        kind = self._spec.type_of(name)
        values = self._rng.sample(_PARTITIONS[kind.removesuffix(" NOT NULL")], 2)
        return values if kind.endswith(" NOT NULL") else [*values, None]

    def batch(self, count: int, *, delete_rate: float = 0.25) -> Batch:
        """The next commit; keyed tables delete some of their keys."""
        rows = random_rows(self._rng, self._spec.columns, count)
        for row in rows:
            for name, values in self._partitions.items():
                row[name] = self._rng.choice(values)
            if self._spec.primary_key:
                row.update(self._rng.choice(self._keys))
        if not self._spec.primary_key or delete_rate == 0:
            return Batch(rows, None)
        return Batch(rows, ["-D" if self._rng.random() < delete_rate else "+I" for _ in rows])
