from functools import partial

import pytest

from tablestore.memo import MOST_CHARACTERS, MOST_RESULTS, Memo, RecentlyUsed


def test_what_was_asked_before_is_not_computed_again() -> None:
    asked: list[tuple[str, int]] = []

    def made(text: str, number: int = 0) -> list[str]:
        asked.append((text, number))
        return [text] * number

    memo = Memo()
    first = memo(made, "a", 2)
    assert memo(made, "a", 2) is first == ["a", "a"]
    assert memo(made, "a", 3) == ["a"] * 3
    assert memo(len, "a") == 1
    assert Memo()(made, "a", 2) is not first
    assert asked == [("a", 2), ("a", 3), ("a", 2)]


def test_an_error_and_what_comes_of_a_long_text_are_not_kept() -> None:
    def refuse(text: str) -> str:
        asked.append(text)
        raise ValueError(text)

    asked: list[str] = []
    memo = Memo()
    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            memo(refuse, "no")
    assert asked == ["no", "no"]
    long = "x" * (MOST_CHARACTERS + 1)
    assert memo(list, long) is not memo(list, long)


def test_only_the_newest_results_are_kept() -> None:
    memo = Memo()
    first = memo(list, "0")
    for number in range(1, MOST_RESULTS + 1):
        memo(list, str(number))
    assert memo(list, "0") is not first


def test_values_used_last_are_kept_up_to_a_number_and_a_weight() -> None:
    made: list[str] = []
    recent: RecentlyUsed[int] = RecentlyUsed(lambda weight: weight, most=3, most_weight=10)

    def find(key: str, weight: int) -> None:
        def make() -> int:
            made.append(key)
            return weight

        assert recent.find(key, make) == weight

    for key in "abcabdabcd":
        find(key, 1)
    assert made == [*"abcdcd"]
    # Too heavy to be kept: nothing else makes room for it.
    for key, weight in (("heavy", 11), ("d", 1), ("heavy", 11)):
        find(key, weight)
    assert made[6:] == ["heavy", "heavy"]
    made.clear()
    for key, weight in (("x", 9), ("y", 1), ("y", 1), ("z", 2), ("x", 9)):
        find(key, weight)
    assert made == ["x", "y", "z", "x"]
    assert len(recent) == 1


def test_what_cannot_be_made_is_not_kept() -> None:
    recent: RecentlyUsed[int] = RecentlyUsed(lambda _: 1, most=3, most_weight=3)
    for error in (ValueError, KeyError):
        with pytest.raises(error):
            recent.find("a", partial(_fail, error))
    assert recent.find("a", lambda: 5) == 5


def _fail(error: type[Exception]) -> int:
    raise error
