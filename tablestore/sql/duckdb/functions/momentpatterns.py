"""Reads patterns of dates and times as java.time does, and writes moments in them.

Spark takes the letters ``y M L d D E F G Q q a h H k K m s S V v z O X x Z``, texts in quotes and optional parts in brackets. What
it refuses is an error here; what is written differs from region to region (the names of time zones) is refused.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from sqlglot import exp

from tablestore.errors import InvalidInputError
from tablestore.sql.duckdb.calls import refusal, written
from tablestore.sql.duckdb.textforms import once

_LENGTHS = {
    **dict.fromkeys("dhHkKms", 2), **dict.fromkeys("MLQqEG", 4), "y": 6, "D": 3, "F": 1, "a": 1, "S": 9, "z": 4, "Z": 5, "X": 5,
    "x": 5,
}  # fmt: skip
_ONLY_LENGTHS = {"V": (2,), "v": (1, 4), "O": (1, 4)}
_OF_TIME = frozenset("ahHkKmsS")
ZONE_LETTERS = frozenset("VvzOXxZ")
_NOT_READ = frozenset("EFQq")
_CODES = {
    "M": "%-m", "MM": "%m", "MMM": "%b", "MMMM": "%B", "d": "%-d", "dd": "%d", "H": "%-H", "HH": "%H", "h": "%-I", "hh": "%I",
    "m": "%-M", "mm": "%M", "s": "%-S", "ss": "%S", "a": "%p", "E": "%a", "EE": "%a", "EEE": "%a", "EEEE": "%A", "D": "%-j",
    "DDD": "%j", "SSS": "%g", **{"S" * count: f"%f{'0' * (count - 6)}" for count in range(6, 10)},
}  # fmt: skip
_YEARS = {"yy": "%y", "yyyy": "%Y", "yyyyy": "0%Y", "yyyyyy": "00%Y"}
_TEXTS = {
    "k": "CAST((HOUR(:at) + 23) % 24 + 1 AS VARCHAR)",
    "kk": "LPAD(CAST((HOUR(:at) + 23) % 24 + 1 AS VARCHAR), 2, '0')",
    "K": "CAST(HOUR(:at) % 12 AS VARCHAR)",
    "KK": "LPAD(CAST(HOUR(:at) % 12 AS VARCHAR), 2, '0')",
    "F": "CAST((DAY(:at) - 1) % 7 + 1 AS VARCHAR)",
    "DD": "CASE WHEN DAYOFYEAR(:at) < 10 THEN '0' ELSE '' END || CAST(DAYOFYEAR(:at) AS VARCHAR)",
    "Q": "CAST(QUARTER(:at) AS VARCHAR)",
    "QQ": "'0' || CAST(QUARTER(:at) AS VARCHAR)",
    "QQQ": "'Q' || CAST(QUARTER(:at) AS VARCHAR)",
    "QQQQ": "CAST(QUARTER(:at) AS VARCHAR) || CASE QUARTER(:at) WHEN 1 THEN 'st' WHEN 2 THEN 'nd' WHEN 3 THEN 'rd' ELSE 'th' END"
    " || ' quarter'",
    **{"S" * count: f"LEFT(STRFTIME(:at, '%f'), {count})" for count in (1, 2, 4, 5)},
    **dict.fromkeys(("G", "GG", "GGG"), "CASE WHEN YEAR(:at) < 1 THEN 'BC' ELSE 'AD' END"),
    "GGGG": "CASE WHEN YEAR(:at) < 1 THEN 'Before Christ' ELSE 'Anno Domini' END",
    "VV": "CURRENT_SETTING('TimeZone')",
}
_ERAS = {1: "AD", 2: "AD", 3: "AD", 4: "Anno Domini"}
_USUAL = "YEAR(:at) BETWEEN 1 AND 9999"
# Seconds that the clocks of the session are before those of UTC, and their digits.
_OFFSET = "((EPOCH_US(:at) - EPOCH_US(:zoned)) // 1000000)"
_SIGN = f"CASE WHEN {_OFFSET} < 0 THEN '-' ELSE '+' END"
_HOURS = f"CAST(ABS({_OFFSET}) // 3600 AS INT)"
_MINUTES = f"CAST(ABS({_OFFSET}) // 60 % 60 AS INT)"
_SECONDS = f"CAST(ABS({_OFFSET}) % 60 AS INT)"
_ZONE_NAMES = (("UTC", "UTC", "Coordinated Universal Time"), ("Etc/UTC", "UTC", "Coordinated Universal Time"))


def _two(number: str) -> str:
    return f"LPAD(CAST({number} AS VARCHAR), 2, '0')"


@dataclass(frozen=True, slots=True)
class PatternPart:
    """A part of a pattern: letters of one kind, or a text (``letter`` is empty), or ``[`` and ``]`` around an optional part."""

    letter: str
    count: int = 1
    text: str = ""

    @property
    def letters(self) -> str:
        """The letters as they are written."""
        return self.letter * self.count


@cache
def parts_of(pattern: str, *, is_read: bool) -> tuple[PatternPart, ...]:
    """The parts of a pattern by which moments are read or written. Raises InvalidInputError for what is no pattern in Spark."""
    parts: list[PatternPart] = []
    at, depth = 0, 0
    while at < len(pattern):
        sign = pattern[at]
        end = at + 1
        if sign.isascii() and sign.isalpha():
            while pattern[end : end + 1] == sign:
                end += 1
            _check_letters(pattern, sign, end - at, is_read=is_read)
            parts.append(PatternPart(sign, end - at))
        elif sign == "'":
            text, end = _quoted(pattern, at)
            parts.append(PatternPart("", text=text))
        elif sign in "{}#":
            raise _no_pattern(pattern, f"{sign}, which is reserved")
        elif sign in "[]":
            depth += 1 if sign == "[" else -1
            if depth < 0:
                raise _no_pattern(pattern, "] without [")
            parts.append(PatternPart(sign))
        else:
            parts.append(PatternPart("", text=sign))
        at = end
    if is_read and "S" in {part.letter for part in parts} and pattern.endswith("''"):
        raise refusal("a pattern of dates with fractions that ends with two quotes")
    parts += [PatternPart("]")] * depth
    return tuple(parts)


def _check_letters(pattern: str, letter: str, count: int, *, is_read: bool) -> None:
    lengths = _ONLY_LENGTHS.get(letter)
    if letter == "g":
        raise refusal("a pattern of dates with the letter g")
    if (letter not in _LENGTHS and lengths is None) or (is_read and letter in _NOT_READ):
        raise _no_pattern(pattern, f"the letter {letter}{' for texts that are read' * (letter in _NOT_READ)}")
    if count not in lengths if lengths else count > _LENGTHS[letter]:
        raise _no_pattern(pattern, f"{letter * count}: too many or too few letters")


def _quoted(pattern: str, at: int) -> tuple[str, int]:
    """The text in quotes that begins at a place, and where it ends."""
    match = re.compile("'((?:[^']|'')*)'").match(pattern, at)
    if match is None:
        raise _no_pattern(pattern, "a quote that does not end")
    return match[1].replace("''", "'") or "'", match.end()


def _no_pattern(pattern: str, why: str) -> InvalidInputError:
    return InvalidInputError(f"expected a pattern of dates as Spark has them, found {pattern!r:.80} with {why}", kind="query")


def has_zone(pattern: str) -> bool:
    """True if a pattern has a time zone."""
    return any(part.letter in ZONE_LETTERS for part in parts_of(pattern, is_read=False))


def check_of_time(pattern: str) -> None:
    """Raises InvalidInputError if a pattern has something else than the time of a day."""
    for part in parts_of(pattern, is_read=False):
        if part.letter not in ("", "[", "]") and part.letter not in _OF_TIME:
            raise _no_pattern(pattern, f"the letter {part.letter}, which a TIME has not")


def text_of(at: exp.Expr, pattern: str, zoned: exp.Expr | None = None) -> exp.Expr:
    """A TIMESTAMP_NTZ as a text. ``zoned``: the TIMESTAMP that clocks show so, for a pattern with a time zone."""
    parts = [part for part in parts_of(pattern, is_read=False) if part.letter not in ("[", "]")]
    of_era = any(part.letter == "G" for part in parts)
    usual = _concatenated(list(_usual_pieces(parts)))
    names = {"at": at, **({} if zoned is None else {"zoned": zoned})}
    used = {name: value for name, value in names.items() if f":{name}" in usual}
    if not any(part.letter in "yG" for part in parts if part.letter):
        return _written_of(usual, used, at)
    other = _concatenated(list(_all_pieces(parts, of_era=of_era)))
    return _written_of(f"CASE WHEN {_USUAL} THEN {usual} WHEN NOT :at IS NULL THEN {other} END", names, at)


def usual_text_of(at: exp.Expr, pattern: str) -> exp.Expr:
    """A TIMESTAMP_NTZ of the years 1 to 9999 as a text, by a pattern without a time zone."""
    parts = [part for part in parts_of(pattern, is_read=False) if part.letter not in ("[", "]")]
    usual = _concatenated(list(_usual_pieces(parts)))
    if usual.count(":at") == 1:
        return _written_of(usual, {"at": at}, at)
    return once(at, lambda value: _written_of(usual, {"at": value}, value))


def _written_of(text: str, names: dict[str, exp.Expr], at: exp.Expr) -> exp.Expr:
    if ":at" not in text:
        text = f"CASE WHEN NOT :at IS NULL THEN {text} END"
        names = {**names, "at": at}
    return exp.paren(written(text, **{name: value.copy() for name, value in names.items()}), copy=False)


def _usual_pieces(parts: list[PatternPart]) -> Iterator[str]:
    """The pieces of a text of a moment in the years 1 to 9999: what STRFTIME knows, at once, between the others."""
    form = ""
    for part in parts:
        code = _code(part)
        if code is not None:
            form += code
            continue
        if form:
            yield _strftime(form)
        form = ""
        yield _piece(part)
    if form:
        yield _strftime(form)


def _code(part: PatternPart) -> str | None:
    if not part.letter:
        return part.text.replace("%", "%%")
    if part.letter == "G":
        return _ERAS[part.count]
    letters = part.letters.replace("L", "M")
    return _YEARS.get(letters) or _CODES.get(letters)


def _strftime(form: str) -> str:
    literal = "'" + form.replace("'", "''") + "'"
    return f"STRFTIME(:at, {literal})" if re.search("%[^%]", form) else literal.replace("%%", "%")


def _all_pieces(parts: list[PatternPart], *, of_era: bool) -> Iterator[str]:
    """The pieces of a text of a moment of any year."""
    for part in parts:
        if part.letter == "y":
            yield _year(part.count, of_era=of_era)
        elif part.letter == "G":
            yield _TEXTS[part.letters]
        else:
            code = _code(part)
            yield _piece(part) if code is None else _strftime(code)


def _year(count: int, *, of_era: bool) -> str:
    year = "(CASE WHEN YEAR(:at) < 1 THEN 1 - YEAR(:at) ELSE YEAR(:at) END)" if of_era else "YEAR(:at)"
    if count == 2:
        return _two(f"ABS({year}) % 100")
    digits = f"CAST(ABS({year}) AS VARCHAR)"
    padded = f"REPEAT('0', GREATEST({count} - LENGTH({digits}), 0)) || {digits}"
    plus = f"WHEN LENGTH({digits}) > {count} THEN '+' " if count > 3 else ""
    return f"CASE WHEN {year} < 0 THEN '-' {plus}ELSE '' END || {padded}"


def _piece(part: PatternPart) -> str:
    letters = part.letters
    if part.letter == "y":
        return _year(part.count, of_era=False)
    if part.letter in "Qq":
        return _TEXTS[letters.upper()]
    if part.letter in "zv":
        return _zone_name(is_long=part.count == 4)
    if part.letter in "XxZO":
        return _offset(part)
    return _TEXTS[letters]


def _zone_name(*, is_long: bool) -> str:
    message = str(refusal("a pattern of dates with the name of the session's time zone, unless that is UTC,"))
    names = " ".join(f"WHEN '{zone}' THEN '{long if is_long else short}'" for zone, short, long in _ZONE_NAMES)
    error = message.replace("'", "''")
    return f"CASE CURRENT_SETTING('TimeZone') {names} ELSE ERROR('{error}') END"


def offset_form(part: PatternPart) -> tuple[int, str]:
    """The number of letters X that write an offset as a part does, and what stands for none."""
    count = part.count if part.letter != "Z" else 5 if part.count == 5 else 2
    is_letter = part.letter == "X" or part.letters == "ZZZZZ"
    return count, "Z" if is_letter else {1: "+00", 2: "+0000", 4: "+0000"}.get(count, "+00:00")


def _offset(part: PatternPart) -> str:
    if part.letter == "O" or part.letters == "ZZZZ":
        is_short = part.count == 1
        hours = f"CAST({_HOURS} AS VARCHAR)" if is_short else _two(_HOURS)
        seconds = f"CASE WHEN {_SECONDS} <> 0 THEN ':' || {_two(_SECONDS)} ELSE '' END"
        rest = f"':' || {_two(_MINUTES)} || {seconds}"
        if is_short:
            rest = f"CASE WHEN {_MINUTES} + {_SECONDS} <> 0 THEN {rest} ELSE '' END"
        return f"CASE WHEN {_OFFSET} = 0 THEN 'GMT' ELSE 'GMT' || {_SIGN} || {hours} || {rest} END"
    count, zero = offset_form(part)
    colon = "':' || " if count in (3, 5) else ""
    minutes = f"{colon}{_two(_MINUTES)}"
    if count == 1:
        minutes = f"CASE WHEN {_MINUTES} <> 0 THEN {minutes} ELSE '' END"
    seconds = f" || CASE WHEN {_SECONDS} <> 0 THEN {colon}{_two(_SECONDS)} ELSE '' END" if count > 3 else ""
    shown = _OFFSET if count > 3 else f"({_HOURS} + {_MINUTES})"
    return f"CASE WHEN {shown} = 0 THEN '{zero}' ELSE {_SIGN} || {_two(_HOURS)} || {minutes}{seconds} END"


def _concatenated(pieces: list[str]) -> str:
    return "(" + " || ".join(f"({piece})" if " " in piece else piece for piece in pieces) + ")" if pieces else "''"


_FIXED = frozenset({"MM", "dd", "HH", "hh", "mm", "ss", "yyyy"})
_KINDS = {"y": "y", "M": "M", "L": "M", "d": "d", "H": "H", "h": "H", "a": "a", "m": "m", "s": "s", "S": "S"}


def strptime_form(pattern: str, *, is_time: bool = False) -> str | None:
    """The form in which STRPTIME reads what STRFTIME writes with it as Spark reads it by a pattern; None if there is none.

    It has a year of four digits, no part twice, and beside digits only others of a fixed number. ``is_time``: it may be of a time
    alone, as the day does not matter.
    """
    form, kinds, letters = "", [], set()
    before: PatternPart | None = None
    for part in parts_of(pattern, is_read=True):
        if part.letter in ("[", "]"):
            return None
        code = _code(part)
        if code is None or (part.letter and part.letter not in _KINDS) or (part.letter == "y" and part.count != 4):
            return None
        if part.letter:
            if part.letter == "S" and part.count not in (3, 6):
                return None
            is_text = part.letter == "a" or (part.letter in "ML" and part.count > 2)
            was_text = before is None or not before.letter or before.letter == "a" or (before.letter in "ML" and before.count > 2)
            if not is_text and not was_text and not (before is not None and {before.letters, part.letters} <= _FIXED):
                return None
            kinds.append(_KINDS[part.letter])
            letters.add(part.letter)
        elif not part.text.isascii() or any(sign.isspace() and sign != " " for sign in part.text) or part.text[:1].isdigit():
            return None
        form, before = form + code, part
    if is_time and "y" not in kinds and not {"M", "d"}.isdisjoint(kinds):
        return None
    if not form or len(set(kinds)) != len(kinds) or not (is_time or "y" in kinds) or ("h" in letters) != ("a" in letters):
        return None
    return form
