"""Finds the secrets that values name: ``env:NAME`` and ``file:PATH``.

    env:NAME     the variable NAME of the process that uses the value
    file:PATH    the text of a file of its machine, without the end of its last line

A value is resolved where it is used, by the process that uses it; what is kept, shown, pickled and sent is its name. Only what a
program or its user gives is resolved: options of a catalog, a file system, and a session's own tables with a connector. What is
stored in a warehouse, or sent, never is: its writer would read the reader's files and environment with it.
"""

import os
from collections.abc import Mapping
from typing import Any

from tablestore.errors import InvalidInputError
from tablestore.redaction import HIDDEN, is_reference

_MOST_BYTES = 1 << 20


def resolved(value: Any, what: str, environ: Mapping[str, str] | None = None) -> Any:
    """The secret that a value names, or the value itself; of a mapping and a list those inside. ``what`` is set by it.

    Raises InvalidInputError of kind ``secret`` for a name without a secret.
    """
    if isinstance(value, Mapping):
        return {key: resolved(inner, f"{what}.{key}", environ) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(resolved(inner, what, environ) for inner in value)
    if value == HIDDEN:
        raise InvalidInputError(
            f"{what} is {HIDDEN}, which stands for a value that is not shown; give the value, or name it as env:NAME or file:PATH",
            kind="secret",
        )
    if not is_reference(value):
        return value
    kind, _, name = value.partition(":")
    return _variable(name, what, os.environ if environ is None else environ) if kind == "env" else _content(name, what)


def _variable(name: str, setting: str, environ: Mapping[str, str]) -> str:
    if not (secret := environ.get(name)):
        raise InvalidInputError(
            f"{setting} is env:{name}, and the environment of this process has no {name}; set it", kind="secret"
        )
    return secret


def _content(path: str, setting: str) -> str:
    try:
        with open(os.path.expanduser(path), "rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise ValueError("it is larger than 1 mb")
        return content.decode().removesuffix("\n").removesuffix("\r")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InvalidInputError(
            f"{setting} is file:{path}, and this process cannot read it ({reason}); name a file of this machine that holds the "
            "secret and nothing else",
            kind="secret",
        ) from None
