"""Seeded rows: what a row holds is a function of the seed, its number and its version, so every result can be foretold.

    keys        bigint       0 … n-1
                scattered    bigint over the whole range of 64 bits
                string       20 characters, scattered
                composite    one of 50 shops (text) and a bigint
    values      quantity bigint, price double, code text of 13 digits

A workload of several runs has one run with every row, in random order, and others that together rewrite a share of the
rows, none of them twice.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.digest import digest, mix

KeyKind = Literal["bigint", "scattered", "string", "composite"]
KEY_KINDS: tuple[KeyKind, ...] = ("bigint", "scattered", "string", "composite")

Numbers = npt.NDArray[np.uint64]

_HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
_SHOPS = 50
CHUNK_ROWS = 1_000_000


@dataclass(frozen=True, slots=True)
class Workload:
    """Rows of one kind of key under one seed."""

    kind: KeyKind
    rows: int
    seed: int

    @property
    def primary_key(self) -> list[str]:
        return ["shop", "id"] if self.kind == "composite" else ["id"]

    @property
    def schema(self) -> pa.Schema:
        return self.table(np.zeros(0, dtype=np.uint64)).schema

    def table(self, numbers: Numbers, version: int = 0) -> pa.Table:
        """The rows of these numbers in this version."""
        random = mix(mix(numbers) ^ np.uint64(self.seed * 1_000_003 + version))
        columns: dict[str, pa.Array] = {}
        if self.kind == "composite":
            names = pa.array([f"shop-{number:04d}" for number in range(_SHOPS)])
            columns["shop"] = names.take(pa.array((mix(numbers) % np.uint64(_SHOPS)).astype(np.int64)))
        columns["id"] = self._key(numbers)
        columns["quantity"] = pa.array((random % np.uint64(1_000_000)).astype(np.int64))
        columns["price"] = pa.array((mix(random) % np.uint64(10_000_000)).astype(np.float64) / 100)
        columns["code"] = _digits(mix(random ^ np.uint64(1)) % np.uint64(10**13))
        keys = set(self.primary_key)
        schema = pa.schema([pa.field(name, column.type, nullable=name not in keys) for name, column in columns.items()])
        return pa.Table.from_arrays(list(columns.values()), schema=schema)

    def shuffled(self) -> Numbers:
        """All row numbers in random order."""
        return np.random.default_rng(self.seed).permutation(self.rows).astype(np.uint64)

    def base(self) -> Iterator[pa.Table]:
        """Every row in version 0, in random order, in tables of bounded size."""
        numbers = self.shuffled()
        for start in range(0, self.rows, CHUNK_ROWS):
            yield self.table(numbers[start : start + CHUNK_ROWS])

    def rewrites(self, runs: int, share: float) -> Iterator[pa.Table]:
        """``runs - 1`` tables that together hold ``share`` of the rows, in versions 1, 2, …"""
        chosen = self._chosen(share)
        for version, numbers in enumerate(np.array_split(chosen, runs - 1), start=1):
            yield self.table(numbers, version)

    def merged(self, runs: int, share: float) -> pa.Table:
        """What reading ``base`` and ``rewrites`` has to give, in any order."""
        chosen = self._chosen(share) if runs > 1 else np.zeros(0, dtype=np.uint64)
        kept = np.ones(self.rows, dtype=np.bool_)
        kept[chosen.astype(np.int64)] = False
        newest = list(self.rewrites(runs, share)) if runs > 1 else []
        return pa.concat_tables([self.table(np.flatnonzero(kept).astype(np.uint64)), *newest])

    def digest_of_merged(self, runs: int, share: float) -> tuple[int, int]:
        """The digest of :meth:`merged`, without holding all rows at once."""
        chosen = self._chosen(share)
        kept = np.ones(self.rows, dtype=np.bool_)
        kept[chosen.astype(np.int64)] = False
        numbers = np.flatnonzero(kept).astype(np.uint64)
        total = 0
        for start in range(0, len(numbers), CHUNK_ROWS):
            total += self.digest(self.table(numbers[start : start + CHUNK_ROWS]))[1]
        total += sum(self.digest(part)[1] for part in self.rewrites(runs, share))
        return self.rows, total % 2**64

    def digest(self, rows: pa.Table) -> tuple[int, int]:
        """What rows are recognised by."""
        return digest(rows, "id")

    def _chosen(self, share: float) -> Numbers:
        generator = np.random.default_rng([self.seed, 1])
        return generator.permutation(self.rows)[: int(self.rows * share)].astype(np.uint64)

    def _key(self, numbers: Numbers) -> pa.Array:
        match self.kind:
            case "bigint" | "composite":
                return pa.array(numbers.astype(np.int64))
            case "scattered":
                return pa.array(mix(numbers).view(np.int64))
            case "string":
                return _hex_text(mix(numbers))


def _hex_text(words: Numbers) -> pa.Array:
    shifts = np.arange(60, -1, -4, dtype=np.uint64)
    text = np.empty((len(words), 20), dtype=np.uint8)
    text[:, :4] = np.frombuffer(b"ord-", dtype=np.uint8)
    text[:, 4:] = _HEX[((words[:, None] >> shifts) & np.uint64(15)).astype(np.int64)]
    return _fixed_text(text)


def _digits(numbers: Numbers) -> pa.Array:
    text = np.empty((len(numbers), 13), dtype=np.uint8)
    for position in range(12, -1, -1):
        numbers, digit = np.divmod(numbers, np.uint64(10))
        text[:, position] = digit.astype(np.uint8) + 48
    return _fixed_text(text)


def _fixed_text(text: npt.NDArray[np.uint8]) -> pa.Array:
    rows, width = text.shape
    offsets = np.arange(0, (rows + 1) * width, width, dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(text))])
