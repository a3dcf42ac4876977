"""Parses a file of expectations: rules that the rows of a table are compared with, and that no writer enforces.

    [[rule]]
    not_null = ["id", "price"]          a rule for each of them

    [[rule]]
    unique = ["id"]                     these columns together; rows with NULL in one of them do not count

    [[rule]]
    range = "price"                     both ends included; one of them may be left out
    min = 0
    max = 1000.0

    [[rule]]
    regex = "email"                     the whole text, by RE2
    pattern = '[^@]+@[^@]+'

    [[rule]]
    values = "state"
    accepted = ["new", "paid"]

    [[rule]]
    foreign_key = ["customer_id"]       rows with NULL in one of them do not count
    references = "shop.customers"
    columns = ["id"]                    its columns; left out: those of the same names

    [[rule]]
    condition = "price * quantity < 10000"

Each may have a ``name``, and ``where``: the condition of the rows that it is about. NULL violates ``not_null`` alone, and a
``condition`` that says so.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tablestore.errors import InvalidInputError
from tablestore.names import did_you_mean

_KIND = "rules"
# The keys beside those of every rule, by the key that says what the rule is.
_KEYS: Mapping[str, tuple[str, ...]] = {
    "not_null": (),
    "unique": (),
    "range": ("min", "max"),
    "regex": ("pattern",),
    "values": ("accepted",),
    "foreign_key": ("references", "columns"),
    "condition": (),
}
_OF_EVERY_RULE = ("name", "where")
_LONGEST = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One expectation. ``columns``: those that it names; ``settings``: what else it says, by key."""

    kind: str
    name: str
    columns: tuple[str, ...] = ()
    condition: str = ""
    where: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


def parse_rules(text: str, where: str) -> tuple[Rule, ...]:
    """The rules of a file. Raises InvalidInputError of kind ``rules`` that names what is wrong in it."""
    if len(text) > _LONGEST:
        raise _wrong(where, f"expected at most {_LONGEST} characters, found {len(text)}")
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _wrong(where, f"expected TOML with a [[rule]] for each expectation ({error})") from error
    if unknown := [key for key in document if key != "rule"]:
        raise _wrong(where, f"expected [[rule]] and nothing else, found {unknown[0]!r:.80}{did_you_mean(unknown[0], ['rule'])}")
    listed = document.get("rule", [])
    if not isinstance(listed, list) or not listed or not all(isinstance(one, dict) for one in listed):
        raise _wrong(where, 'expected at least one [[rule]], such as [[rule]] not_null = ["id"]')
    rules = [rule for number, one in enumerate(listed, start=1) for rule in _rules(one, f"{where}, rule {number}")]
    names = [rule.name for rule in rules]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise _wrong(where, f"two rules are called {twice[0]!r:.100}; give one of them another name")
    return tuple(rules)


def _rules(entry: Mapping[str, Any], where: str) -> list[Rule]:
    kinds = [key for key in entry if key in _KEYS]
    if len(kinds) != 1:
        raise _wrong(where, f"expected exactly one of {', '.join(_KEYS)}, found {', '.join(kinds or entry) or 'nothing'}")
    (kind,) = kinds
    known = (kind, *_KEYS[kind], *_OF_EVERY_RULE)
    if unknown := [key for key in entry if key not in known]:
        raise _wrong(where, f"{kind} takes {', '.join(known[1:])}, found {unknown[0]!r:.80}{did_you_mean(unknown[0], known)}")
    named, condition = _text(entry, "name", where), _text(entry, "where", where)
    if kind == "condition":
        text = _text(entry, kind, where)
        return [Rule(kind=kind, name=named or f"condition({text})", condition=text or "", where=condition)]
    columns = _names(entry[kind], f"{where}, {kind}")
    settings = {key: entry[key] for key in _KEYS[kind] if key in entry}
    _check_settings(kind, columns, settings, where)
    if kind != "not_null":
        return [Rule(kind=kind, name=named or _called(kind, columns), columns=columns, where=condition, settings=settings)]
    if named is not None and len(columns) > 1:
        raise _wrong(where, "expected one column of not_null in a rule with a name; without one there is a rule for each")
    return [Rule(kind=kind, name=named or _called(kind, (column,)), columns=(column,), where=condition) for column in columns]


def _called(kind: str, columns: Sequence[str]) -> str:
    return f"{kind}({', '.join(columns)})"


def _check_settings(kind: str, columns: Sequence[str], settings: Mapping[str, Any], where: str) -> None:
    if kind in ("range", "regex", "values") and len(columns) != 1:
        raise _wrong(where, f"{kind} takes one column, found {len(columns)}; write a rule for each")
    match kind:
        case "range":
            if not settings:
                raise _wrong(where, "range takes min, max or both, found neither")
        case "regex":
            if not isinstance(settings.get("pattern"), str):
                raise _wrong(where, "regex takes the text pattern, by which the whole value is matched")
        case "values":
            if not isinstance(settings.get("accepted"), list) or not settings["accepted"]:
                raise _wrong(where, "values takes the list accepted, such as accepted = ['new', 'paid']")
        case "foreign_key":
            if not isinstance(settings.get("references"), str):
                raise _wrong(where, "foreign_key takes references, the name of the table that has the keys")
            others = _names(settings.get("columns", list(columns)), f"{where}, columns")
            if len(others) != len(columns):
                raise _wrong(where, f"foreign_key names {len(columns)} column(s), and {len(others)} of the other table")


def _names(value: Any, where: str) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names or not all(isinstance(name, str) and name for name in names):
        raise _wrong(where, f"expected the name of a column, or a list of names, found {value!r:.80}")
    if len(set(names)) < len(names):
        raise _wrong(where, f"a column stands there twice: {', '.join(names)}")
    return tuple(names)


def _text(entry: Mapping[str, Any], key: str, where: str) -> str | None:
    text = entry.get(key)
    if text is not None and (not isinstance(text, str) or not text.strip()):
        raise _wrong(where, f"expected a text as {key}, found {text!r:.80}")
    return text


def _wrong(where: str, message: str) -> InvalidInputError:
    return InvalidInputError(f"{where}: {message}", kind=_KIND)
