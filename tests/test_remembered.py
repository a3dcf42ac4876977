import pytest

from tablestore.remembered import MOST_CHARACTERS, MOST_RESULTS, Remembered


def test_what_was_asked_before_is_not_computed_again() -> None:
    asked: list[tuple[str, int]] = []

    def made(text: str, number: int = 0) -> list[str]:
        asked.append((text, number))
        return [text] * number

    remembered = Remembered()
    first = remembered(made, "a", 2)
    assert remembered(made, "a", 2) is first == ["a", "a"]
    assert remembered(made, "a", 3) == ["a"] * 3
    assert remembered(len, "a") == 1
    assert Remembered()(made, "a", 2) is not first
    assert asked == [("a", 2), ("a", 3), ("a", 2)]


def test_an_error_and_what_comes_of_a_long_text_are_not_kept() -> None:
    def refuse(text: str) -> str:
        asked.append(text)
        raise ValueError(text)

    asked: list[str] = []
    remembered = Remembered()
    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            remembered(refuse, "no")
    assert asked == ["no", "no"]
    long = "x" * (MOST_CHARACTERS + 1)
    assert remembered(list, long) is not remembered(list, long)


def test_only_the_newest_results_are_kept() -> None:
    remembered = Remembered()
    first = remembered(list, "0")
    for number in range(1, MOST_RESULTS + 1):
        remembered(list, str(number))
    assert remembered(list, "0") is not first
