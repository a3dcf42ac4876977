"""Arithmetic finds in the arrays what is in the set."""

import numpy as np
import pytest

from tablestore.distributed.keybits import KeyBits, NumberedKeys
from tests.distributed.layeredrows import contains, number_of


@pytest.mark.deep_after(3)
@pytest.mark.parametrize("low", [-(2**63), -129, -64, -1, 0, 1, 63, 64, 2**31, 2**63 - 4097])
def test_every_key_of_a_set_is_found_with_its_number_and_no_other_is(low: int) -> None:
    draw = np.random.default_rng(abs(low) % 97)
    for span, count in ((1, 1), (2, 2), (64, 64), (65, 3), (4096, 1000), (4096, 1)):
        keys = np.sort(draw.choice(span, count, replace=False)).astype(np.int64) + np.int64(low)
        numbers = draw.integers(0, 2**40, count)
        numbered = NumberedKeys.of(keys, numbers)
        asked = {low, low + span - 1, low + span, low - 1, -(2**63), 2**63 - 1, 0, *map(int, keys)}
        for key in (key for key in asked if -(2**63) <= key < 2**63):
            assert contains(KeyBits.of(keys), key) == (key in set(keys.tolist()))
            assert (number_of(numbered, key) is not None) == (key in set(keys.tolist()))
        assert [number_of(numbered, int(key)) for key in keys] == numbers.tolist()
