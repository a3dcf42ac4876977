"""Encodes what a service knows of its callers, tokens and rules for queries, as one JSON document. Stored: names are never changed.

    {"version": 1,
     "tokens": [{"id": "3f…", "name": "reports", "sha256": "…", "grants": [{"role": "reader", "database": "shop"}],
                 "created": 1767225600000, "expires": null, "revoked": null}],
     "rules":  [{"database": "shop", "table": "orders", "roles": ["reader"], "row_filter": "region = 'eu'",
                 "column_masks": {"card": null}}]}

Reading is strict: a key or a role that is not known is refused rather than passed over, because it may restrict somebody.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tablestore.errors import FormatError
from tablestore.names import did_you_mean
from tablestore.server.access.identities import Token
from tablestore.server.access.queryrules import QueryRule
from tablestore.server.access.roles import Grant, Resource, Role

VERSION = 1
MOST_BYTES = 16 << 20
_SHA256_CHARACTERS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessDocument:
    """Tokens in the order in which they were created, and rules in the order in which they were written."""

    tokens: tuple[Token, ...] = ()
    rules: tuple[QueryRule, ...] = ()


EMPTY = AccessDocument()
Change = Callable[[AccessDocument], AccessDocument]
"""Makes another document of one."""


def encode_access(document: AccessDocument) -> bytes:
    """The bytes of a document: the same for the same value."""
    value = {
        "version": VERSION,
        "tokens": [
            {
                "id": token.id,
                "name": token.name,
                "sha256": token.sha256,
                "grants": [grant_to_json(grant) for grant in token.grants],
                "created": token.created_ms,
                "expires": token.expires_ms,
                "revoked": token.revoked_ms,
            }
            for token in document.tokens
        ],
        "rules": [rule_to_json(rule) for rule in document.rules],
    }
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()


def decode_access(data: bytes, where: str) -> AccessDocument:
    """The document in ``data``; ``where`` is for messages. Raises FormatError."""
    value = _object(_parsed(data, where), where)
    version = value.get("version")
    if version != VERSION:
        raise FormatError(
            f"{where}: expected version {VERSION}, found {version!r:.50}; a newer tablestore has written it: update this one",
            kind="version",
        )
    _only(value, where, "version", "tokens", "rules")
    tokens = tuple(_token(one, f"{where}, token {number}") for number, one in enumerate(_list(value, "tokens", where)))
    for distinct in ({token.id for token in tokens}, {token.sha256 for token in tokens}):
        if len(distinct) < len(tokens):
            raise FormatError(f"{where}: two tokens have one id or one sha256, of which one may be revoked; remove one of them")
    return AccessDocument(
        tokens=tokens,
        rules=parse_rules(_list(value, "rules", where), where),
    )


def parse_rules(values: Sequence[object], where: str) -> tuple[QueryRule, ...]:
    """The rules of a list. Raises FormatError; what their SQL says is checked against the table that it is about."""
    return tuple(_rule(one, f"{where}, rule {number}") for number, one in enumerate(values))


def rule_to_json(rule: QueryRule) -> dict[str, object]:
    """A rule as it is stored."""
    return {
        "database": rule.table.database,
        "table": rule.table.name,
        "principals": list(rule.principals),
        "roles": [str(role) for role in rule.roles],
        "row_filter": rule.row_filter,
        "column_masks": dict(rule.column_masks),
    }


def grant_to_json(grant: Grant) -> dict[str, str]:
    """A grant as it is stored, and shown."""
    places = (("database", grant.resource.database), ("table", grant.resource.name))
    return {"role": str(grant.role), **{key: name for key, name in places if name is not None}}


def parse_grant(value: object, where: str) -> Grant:
    """The grant of a JSON object. Raises FormatError."""
    source = _object(value, where)
    _only(source, where, "role", "database", "table")
    database, table = _optional_text(source, "database", where), _optional_text(source, "table", where)
    if table is not None and database is None:
        raise FormatError(f"{where}: a grant on a table names its database too, found the table {table!r:.200} alone")
    return Grant(_role(source.get("role"), where), Resource(database, table))


def _token(value: object, where: str) -> Token:
    source = _object(value, where)
    _only(source, where, "id", "name", "sha256", "grants", "created", "expires", "revoked")
    sha256 = _text(source, "sha256", where)
    if len(sha256) != _SHA256_CHARACTERS or not set(sha256) <= set("0123456789abcdef"):
        raise FormatError(f"{where}: expected a SHA-256 in hexadecimal digits as sha256")
    created = _time(source, "created", where)
    if created is None:
        raise FormatError(f"{where}: expected milliseconds as created, found null")
    return Token(
        id=_text(source, "id", where),
        name=_text(source, "name", where),
        sha256=sha256,
        grants=tuple(parse_grant(one, where) for one in _list(source, "grants", where)),
        created_ms=created,
        expires_ms=_time(source, "expires", where),
        revoked_ms=_time(source, "revoked", where),
    )


def _rule(value: object, where: str) -> QueryRule:
    source = _object(value, where)
    _only(source, where, "database", "table", "principals", "roles", "row_filter", "column_masks")
    masks = _object(source.get("column_masks") or {}, where)
    if wrong := [name for name, mask in masks.items() if mask is not None and not isinstance(mask, str)]:
        raise FormatError(f"{where}: expected SQL text or null as the mask of {wrong[0]!r:.200}")
    principals = [one for one in _list(source, "principals", where, default=()) if isinstance(one, str)]
    if len(principals) != len(_list(source, "principals", where, default=())):
        raise FormatError(f"{where}: expected names of principals as texts")
    return QueryRule(
        table=Resource(_text(source, "database", where), _text(source, "table", where)),
        principals=tuple(principals),
        roles=tuple(_role(one, where) for one in _list(source, "roles", where, default=())),
        row_filter=_optional_text(source, "row_filter", where),
        column_masks=tuple(masks.items()),
    )


def _parsed(data: bytes, where: str) -> object:
    if len(data) > MOST_BYTES:
        raise FormatError(f"{where}: expected at most {MOST_BYTES} bytes, found {len(data)}", kind="limit")
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FormatError(
            f"{where}: expected JSON, found something else ({type(error).__name__}); restore it from a backup, or remove it "
            "and create the tokens anew"
        ) from error


def _only(source: Mapping[str, Any], where: str, *known: str) -> None:
    if unknown := [key for key in source if key not in known]:
        near = did_you_mean(unknown[0], known)
        raise FormatError(f"{where}: no key is called {unknown[0]!r:.200}{near}; keys are {', '.join(known)}")


def _object(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise FormatError(f"{where}: expected a JSON object, found {type(value).__name__}")
    return value


def _list(source: Mapping[str, Any], key: str, where: str, *, default: Sequence[object] | None = None) -> Sequence[object]:
    value = source.get(key, default)
    if not isinstance(value, list | tuple):
        raise FormatError(f"{where}: expected a list as {key}, found {type(value).__name__}")
    return value


def _text(source: Mapping[str, Any], key: str, where: str) -> str:
    value = source.get(key)
    if not isinstance(value, str) or not value:
        raise FormatError(f"{where}: expected text as {key}, found {type(value).__name__}")
    return value


def _optional_text(source: Mapping[str, Any], key: str, where: str) -> str | None:
    return None if source.get(key) is None else _text(source, key, where)


def _time(source: Mapping[str, Any], key: str, where: str) -> int | None:
    value = source.get(key)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise FormatError(f"{where}: expected milliseconds since 1970 or null as {key}, found {type(value).__name__}")
    return value


def _role(value: object, where: str) -> Role:
    if value not in tuple(Role):
        raise FormatError(f"{where}: expected one of the roles {', '.join(Role)}, found {value!r:.100}")
    return Role(str(value))
