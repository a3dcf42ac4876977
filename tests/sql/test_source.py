"""Places in a text, as errors show them."""

from tablestore.sql.source import SHOWN, Span, marked


def test_the_place_is_marked_below_its_line() -> None:
    text = "SELECT a\nFROM\tb WHERE c\nLIMIT 1"
    assert marked(text, Span(14, 15)) == "line 2, column 6:\n  FROM\tb WHERE c\n      \t^"
    assert marked(text, Span(16, 21)) == "line 2, column 8:\n  FROM\tb WHERE c\n      \t  ^^^^^"


def test_a_mark_ends_with_its_line() -> None:
    assert marked("a b\nc", Span(2, 5)) == "line 1, column 3:\n  a b\n    ^"
    assert marked("a\r\nb", Span(0, 4)) == "line 1, column 1:\n  a\n  ^"


def test_the_end_of_the_text_is_a_place() -> None:
    assert marked("ab", Span(2, 2)) == "line 1, column 3:\n  ab\n    ^"
    assert marked("", Span(0, 0)) == "line 1, column 1:\n  \n  ^"
    assert marked("a\n", Span(2, 2)) == "line 2, column 1:\n  \n  ^"


def test_of_a_long_line_only_what_is_around_the_place_is_shown() -> None:
    text = "x" * 1000 + "!" + "y" * 1000
    assert marked(text, Span(1000, 1001)) == (
        f"line 1, column 1001:\n  …{'x' * SHOWN}!{'y' * (SHOWN - 1)}…\n  {' ' * (SHOWN + 1)}^"
    )


def test_what_cannot_be_printed_is_shown_as_one_character() -> None:
    assert marked("a\x1b\x00b", Span(3, 4)) == "line 1, column 4:\n  a\ufffd\ufffdb\n     ^"
