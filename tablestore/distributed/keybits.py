"""Sets and maps of whole numbers as arrays, which an engine without our code can look up with arithmetic alone.

A set of keys is a bitmap, with a bit for each number between the first key and the last one:

    words     [0b0110] [0b0001] …   bit k & 63 of words[(k >> 6) - low_word]: is k among the keys?

Keys with a number for each are a hash table:

    starts    [0, 2, 2, 3]          the keys of place p are keys[starts[p]:starts[p + 1]], where p is k modulo the number of places;
                                    most places are empty, up to a million of them
    keys      [6, 9, 8]
    numbers   [7, 7, 9]             one for each key
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Longs = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class KeyBits:
    """A set of whole numbers between ``low`` and ``high``, at least one."""

    low: int
    high: int
    words: Longs

    @classmethod
    def of(cls, keys: Longs) -> "KeyBits":
        """The set of these keys, ascending and each once."""
        low, high = int(keys[0]), int(keys[-1])
        words = np.zeros((high >> 6) - (low >> 6) + 1, dtype=np.int64)
        places = (keys >> 6) - (low >> 6)
        # Keys of one word lie side by side.
        starts = np.flatnonzero(np.append(True, places[1:] != places[:-1]))
        words[places[starts]] = np.bitwise_or.reduceat(np.int64(1) << (keys & 63), starts)
        return cls(low, high, words)

    @property
    def low_word(self) -> int:
        """The number of the first word, counted from that of key 0."""
        return self.low >> 6


@dataclass(frozen=True, slots=True, eq=False)
class NumberedKeys:
    """A set of keys with a number for each."""

    starts: npt.NDArray[np.int32]
    keys: Longs
    numbers: Longs

    @classmethod
    def of(cls, keys: Longs, numbers: Longs) -> "NumberedKeys":
        """The keys, each once, and the number of each."""
        # Odd, so that keys with a common power of two spread. Keys that share places anyway cost time only.
        count = max(len(keys), min(8 * len(keys), 1 << 20)) | 1
        places = keys % count
        order = np.argsort(places, kind="stable")
        starts = np.searchsorted(places[order], np.arange(count + 1)).astype(np.int32)
        return cls(starts, keys[order], numbers[order])

    @property
    def places(self) -> int:
        """The number of places."""
        return len(self.starts) - 1
