"""Java's regular expressions in RE2's words."""

import pytest
from sqlglot import exp

from tablestore.errors import UnsupportedError
from tablestore.sql.duckdb.patterns import re2_pattern, translated


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("a.b", r"a[^\n\r\x{85}\x{2028}\x{2029}]b"),
        ("(?s)a.b", "(?s)a.b"),
        (r"[\s.]+", r"[\t\n\x0B\f\r .]+"),
        (r"\S", r"[^\t\n\x0B\f\r ]"),
        ("a$", r"a\z"),
        ("(?<year>[0-9]{4})", "(?P<year>[0-9]{4})"),
        (r"\é", "é"),
        ("a+?", "a+?"),
        ("[]a]", None),
    ],
)
def test_what_both_read_alike_is_written_in_the_words_of_re2(pattern: str, text: str | None) -> None:
    if text is None:
        with pytest.raises(UnsupportedError):
            re2_pattern(pattern)
    else:
        assert re2_pattern(pattern).text == text


@pytest.mark.parametrize(
    "pattern",
    [
        "(?=a)",
        "(?<!a)b",
        "(?>a)",
        r"(a)\1",
        "a++",
        "a*+",
        "[a-z&&[^b]]",
        "[a[b]]",
        r"\Qa\E",
        "(?x)a",
        "a(?i)b",
        "a{1001}",
        "a{",
        "[a",
        "(a",
        r"\h",
    ],
)
def test_what_java_reads_in_its_own_way_is_refused(pattern: str) -> None:
    with pytest.raises(UnsupportedError, match="a regular expression"):
        re2_pattern(pattern)


def test_a_pattern_says_for_which_texts_it_is_the_same() -> None:
    assert re2_pattern(r"\ba").is_of_ascii
    assert re2_pattern("(?i)a").is_of_ascii
    assert re2_pattern("a$").is_of_lines
    assert re2_pattern("a*").matches_nothing
    assert re2_pattern("(a)(?:b)(?<c>d)").groups == 2
    assert not re2_pattern("[a]+").matches_nothing


def test_a_pattern_that_is_computed_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="a regular expression that is computed"):
        translated(exp.column("p"))
