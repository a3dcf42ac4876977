"""Writes ``aes_encrypt``, ``aes_decrypt`` and ``try_aes_decrypt``, which the package cryptography computes."""

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from typing import Any

import pyarrow as pa
from sqlglot import exp

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.sql.binding.signatures import always
from tablestore.sql.binding.sqltypes import BINARY, STRING
from tablestore.sql.duckdb.functions.argumenttypes import binary, text
from tablestore.sql.duckdb.functions.arrowfunction import ArrowFunction
from tablestore.sql.duckdb.functions.functionrule import FunctionRule, RuleCall

_PADDINGS = {"ECB": ("DEFAULT", "PKCS"), "CBC": ("DEFAULT", "PKCS"), "GCM": ("DEFAULT", "NONE")}
_VECTOR_BYTES = {"ECB": 0, "CBC": 16, "GCM": 12}
_KEY_BYTES = (16, 24, 32)
_TAG_BYTES = 16
_BLOCK_BITS = 128
_NOTHING = exp.cast(exp.Literal.string(""), "BLOB")
_DEFAULTS = (_NOTHING, _NOTHING, exp.Literal.string("GCM"), exp.Literal.string("DEFAULT"), _NOTHING, _NOTHING)
_NOTE = "it needs the package cryptography, `pip install managed-tablestore[ciphers]`"


@cache
def _library(function: str, module: str) -> Any:
    try:
        return import_module(f"cryptography.hazmat.primitives.{module}")
    except ImportError as error:
        raise UnsupportedError(
            f"the function {function} needs the package cryptography; install it with `pip install managed-tablestore[ciphers]`",
            kind="missing-package",
        ) from error


@cache
def _errors(function: str) -> tuple[type[Exception], ...]:
    """The errors of the package for data that a key has not encrypted."""
    _library(function, "ciphers")
    return ValueError, import_module("cryptography.exceptions").InvalidTag


def _checked_mode(function: str, key: bytes, mode: str, padding: str, aad: bytes) -> str:
    """The mode in capitals. Raises InvalidInputError for what no cipher of Spark's is."""
    name = mode.upper()
    if padding.upper() not in _PADDINGS.get(name, ()):
        raise InvalidInputError(
            f"the function `{function}`: expected the mode ECB or CBC with the padding PKCS, or GCM with NONE, found {mode!r:.40} "
            f"with {padding!r:.40}",
            kind="query",
        )
    if len(key) not in _KEY_BYTES:
        raise InvalidInputError(f"the function `{function}`: expected a key of 16, 24 or 32 bytes, found {len(key)}", kind="query")
    if aad and name != "GCM":
        raise InvalidInputError(f"the function `{function}`: expected data beside the text (aad) with GCM alone", kind="query")
    return name


def _cipher(function: str, key: bytes, mode: str, vector: bytes) -> Any:
    ciphers = _library(function, "ciphers")
    modes = import_module("cryptography.hazmat.primitives.ciphers.modes")
    algorithms = import_module("cryptography.hazmat.primitives.ciphers.algorithms")
    return ciphers.Cipher(algorithms.AES(key), modes.ECB() if mode == "ECB" else modes.CBC(vector))


def _encrypted(function: str, data: bytes, key: bytes, mode: str, padding: str, vector: bytes, aad: bytes) -> bytes:
    name = _checked_mode(function, key, mode, padding, aad)
    size = _VECTOR_BYTES[name]
    if vector and len(vector) != size:
        raise InvalidInputError(
            f"the function `{function}`: expected a vector (iv) of {size} bytes for {name}, found {len(vector)}", kind="query"
        )
    aes = _library(function, "ciphers.aead").AESGCM
    # A key of that size is as many bytes of the system's random source.
    vector = vector or bytes(aes.generate_key(_BLOCK_BITS)[:size])
    if name == "GCM":
        return bytes(vector + aes(key).encrypt(vector, data, aad or None))
    padder = _library(function, "padding").PKCS7(_BLOCK_BITS).padder()
    encryptor = _cipher(function, key, name, vector).encryptor()
    return bytes(vector + encryptor.update(padder.update(data) + padder.finalize()) + encryptor.finalize())


def _plain(function: str, data: bytes, key: bytes, mode: str, padding: str, aad: bytes) -> bytes:
    """The data before it was encrypted. Raises one of :func:`_errors` for other data."""
    name = _checked_mode(function, key, mode, padding, aad)
    size = _VECTOR_BYTES[name]
    vector, rest = data[:size], data[size:]
    if len(vector) < size:
        raise ValueError("the data is shorter than its vector")
    if name == "GCM":
        if len(rest) < _TAG_BYTES:
            raise ValueError("the data is shorter than its tag")
        return bytes(_library(function, "ciphers.aead").AESGCM(key).decrypt(vector, rest, aad or None))
    decryptor = _cipher(function, key, name, vector).decryptor()
    unpadder = _library(function, "padding").PKCS7(_BLOCK_BITS).unpadder()
    return bytes(unpadder.update(decryptor.update(rest) + decryptor.finalize()) + unpadder.finalize())


def _decrypted(function: str, *values: Any) -> bytes:
    try:
        return _plain(function, *values)
    except _errors(function) as error:
        raise InvalidInputError(
            f"the function `{function}`: expected data that this key and this mode have encrypted", kind="query"
        ) from error


def _tried(function: str, *values: Any) -> bytes | None:
    errors: tuple[type[Exception], ...] = (InvalidInputError, *_errors(function))
    try:
        return _plain(function, *values)
    except errors:
        return None


def _over(call: Callable[..., bytes | None], *columns: pa.Array) -> pa.Array:
    """A function over rows, NULL where a value is. Each value has a cipher of its own: there is no computing of whole columns."""
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    return pa.array([None if None in row else call(*row) for row in rows], pa.binary())


_ENCRYPT = ArrowFunction(
    name="aes_encrypt", arguments=(BINARY, BINARY, STRING, STRING, BINARY, BINARY), result=BINARY,
    call=partial(_over, partial(_encrypted, "aes_encrypt")), is_volatile=True,
)  # fmt: skip
_DECRYPT, _TRY_DECRYPT = (
    ArrowFunction(
        name=name, arguments=(BINARY, BINARY, STRING, STRING, BINARY), result=BINARY, call=partial(_over, partial(call, name))
    )
    for name, call in (("aes_decrypt", _decrypted), ("try_aes_decrypt", _tried))
)


def _write(function: ArrowFunction, call: RuleCall) -> exp.Expr:
    _library(call.name, "ciphers")
    values = [
        binary(call, at) if kind == BINARY else text(call, at) for at, kind in enumerate(function.arguments[: len(call.values)])
    ]
    return function.of(*values, *(value.copy() for value in _DEFAULTS[len(values) : len(function.arguments)]))


RULES = (
    FunctionRule(name="aes_encrypt", bounds=(2, 6), result=always(BINARY), write=partial(_write, _ENCRYPT), note=_NOTE),
    FunctionRule(name="aes_decrypt", bounds=(2, 5), result=always(BINARY), write=partial(_write, _DECRYPT), note=_NOTE),
    FunctionRule(name="try_aes_decrypt", bounds=(2, 5), result=always(BINARY), write=partial(_write, _TRY_DECRYPT), note=_NOTE),
)
ARROW = (_ENCRYPT, _DECRYPT, _TRY_DECRYPT)
