"""Translates Java's regular expressions to RE2's, as far as both find the same in each text.

    in Java                                       in RE2
    .                                             one that does not match \\r, U+0085, U+2028 and U+2029 either
    \\s                                            with the vertical tab
    $, where it is the end                        refused for a text that ends with the end of a line
    \\b and (?i) beyond ASCII                      refused for such a text

Whatever is not known to mean the same in both is refused: look-around, back references, possessive repetitions, sets of sets.
"""

import re
from dataclasses import dataclass

from sqlglot import exp

from tablestore.errors import InvalidInputError
from tablestore.sql.duckdb.calls import call, refusal, refused_where, written

_LINE_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
_SPACES = r"\t\n\x0B\f\r "
_NO_ESCAPES = frozenset("gijlmoqyCFIJKLMOTUY")
"""Letters behind a backslash that Java knows no escape of."""
_SAME_ESCAPES = frozenset("dDwWtnrfa")
_TOKEN = re.compile(
    r"\\p\{\^?[A-Z][a-z]?\}|\\P\{[A-Z][a-z]?\}|\\x[0-9A-Fa-f]{2}|\\."
    r"|\(\?[a-z]*:|\(\?<[A-Za-z][A-Za-z0-9]*>|\(\?i?s?\)|\{[0-9]+(?:,[0-9]*)?\}|.",
    re.DOTALL,
)
_MOST_REPEATED = 1000
_HIGH = "[\U00010000-\U0010ffff]"


@dataclass(frozen=True, slots=True)
class Re2Pattern:
    """A pattern in RE2's words.

    ``is_of_ascii``: it is the same for texts of ASCII only; ``is_of_lines``: only for texts that do not end with the end of a line;
    ``matches_nothing``: it may match an empty text; ``is_of_place``: what it matches hangs on what stands around that.
    """

    text: str
    groups: int
    is_of_ascii: bool
    is_of_lines: bool
    matches_nothing: bool
    is_of_place: bool

    def refused_for(self, text: exp.Expr, value: exp.Expr, *, by_place: bool = False) -> exp.Expr:
        """A value, or a refusal for the texts for which the pattern may match something else in Java."""
        if self.is_of_ascii:
            beyond = call("REGEXP_MATCHES", text.copy(), exp.Literal.string(r"[^\x00-\x7F]"))
            value = refused_where(beyond, "a regular expression with \\b or (?i) in a text beyond ASCII", value)
        if self.is_of_lines:
            ends = call("REGEXP_MATCHES", text.copy(), exp.Literal.string(rf"[{_LINE_ENDS}]\z"))
            value = refused_where(ends, "a regular expression with $ in a text that ends with the end of a line", value)
        if by_place:
            high: exp.Expr = call("REGEXP_MATCHES", text.copy(), exp.Literal.string(_HIGH))
            if isinstance(text, exp.Column):
                # A text of ASCII, which has as many bytes as characters, has none.
                high = written("CASE WHEN STRLEN(:value) <> LENGTH(:value) THEN :high END", value=text, high=high)
            value = refused_where(high, "a place in a text with characters beyond U+FFFF", value)
        return value


def translated(pattern: exp.Expr) -> Re2Pattern:
    """A pattern that is written in the query. Raises UnsupportedError for another one, and where RE2 may find something else."""
    if isinstance(pattern, exp.RawString) or (isinstance(pattern, exp.Literal) and pattern.is_string):
        return re2_pattern(str(pattern.this))
    raise refusal(_REFUSED)


_REFUSED = "a regular expression that is computed, or has look-around, back references or possessive repetitions"


def re2_pattern(pattern: str) -> Re2Pattern:
    """A pattern of Java's in RE2's words. Raises UnsupportedError where RE2 may find something else."""
    parts: list[str] = []
    depth, groups, in_set, of_ascii, of_lines, of_place, dot_all = 0, 0, False, False, False, False, False
    begins, after_repeat = True, False
    tokens = _TOKEN.findall(pattern)
    for at, token in enumerate(tokens):
        repeats = False
        if in_set:
            if token == "]" and not begins:
                in_set = False
            elif token in ("[", "]") or (token == "&" and tokens[at + 1 : at + 2] == ["&"]):
                raise refusal(_REFUSED)
            elif token == r"\s":
                token = _SPACES
            elif token.startswith("(?") or (token.startswith("{") and len(token) > 1):
                pass
            elif token[0] == "\\":
                token = _escaped(token, in_set=True)
            begins = begins and token == "^" and tokens[at - 1] == "["
            parts.append(token)
            continue
        match token:
            case "[":
                in_set, begins = True, True
            case ".":
                token = token if dot_all else f"[^{_LINE_ENDS}]"
            case "$":
                of_lines, of_place, token = True, True, r"\z"
            case r"\s" | r"\S":
                token = f"[{_SPACES}]" if token == r"\s" else f"[^{_SPACES}]"
            case r"\b" | r"\B":
                of_ascii = of_place = True
            case "^":
                of_place = True
            case "(" if tokens[at + 1 : at + 2] == ["?"]:
                raise refusal(_REFUSED)
            case "(":
                depth, groups = depth + 1, groups + 1
            case ")":
                depth -= 1
            case "*" | "+" | "?":
                if after_repeat and token == "+":
                    raise refusal(_REFUSED)
                repeats = True
            case "{" | "}" | "]":
                raise refusal(_REFUSED)
            case _ if token.startswith("{"):
                if any(int(number) > _MOST_REPEATED for number in re.findall("[0-9]+", token)):
                    raise refusal(_REFUSED)
                repeats = True
            case _ if token.startswith("(?<"):
                depth, groups, token = depth + 1, groups + 1, f"(?P{token[2:]}"
            case _ if token.startswith("(?"):
                flags = token[2:-1]
                if flags and not (at == 0 and token.endswith(")") and set(flags) <= set("is")):
                    raise refusal(_REFUSED)
                depth += token.endswith(":")
                of_ascii, dot_all = of_ascii or "i" in flags, dot_all or "s" in flags
            case _ if token[0] == "\\":
                token = _escaped(token, in_set=False)
        parts.append(token)
        # A second sign behind a repetition makes it lazy, or possessive.
        after_repeat = repeats and not (after_repeat and token == "?")
        begins = False
    if in_set or depth:
        raise refusal(_REFUSED)
    text = "".join(parts)
    return Re2Pattern(text, groups, of_ascii, of_lines, _matches_nothing(text), of_place)


def _escaped(token: str, *, in_set: bool) -> str:
    letter = token[1:2]
    if not letter:
        raise refusal(_REFUSED)
    if letter in "pPx" and len(token) > 2:
        return token
    if letter in _SAME_ESCAPES:
        return token
    if letter in _NO_ESCAPES:
        raise InvalidInputError(f"the regular expression has \\{letter}, which is no escape", kind="query")
    if letter.isascii() and letter.isalnum():
        raise refusal(_REFUSED)
    return token if letter.isascii() else letter


def _matches_nothing(text: str) -> bool:
    """True if a pattern may match an empty text."""
    plain = text.replace(r"\z", r"\Z").replace(r"\x{85}\x{2028}\x{2029}", r"\x85\u2028\u2029")
    plain = re.sub(r"\\[pP]\{[^}]*\}", "[a-z]", plain)
    try:
        return re.compile(plain).search("") is not None
    except re.error:
        return True
