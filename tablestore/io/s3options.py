"""Checks and translates the options of an S3 client, also those named as other tools name them.

The options are those of s3fs, so that settings for other Python tools fit. No message shows a value: any of them may be a secret.
"""

import re
from collections.abc import Mapping
from typing import Any

from tablestore.errors import InvalidInputError
from tablestore.names import did_you_mean
from tablestore.options import parse_bool

CREDENTIALS = {
    "key": "aws_access_key_id",
    "username": "aws_access_key_id",
    "secret": "aws_secret_access_key",
    "password": "aws_secret_access_key",
    "token": "aws_session_token",
}
"""By their names in botocore."""
_FLAGS = ("anon", "use_ssl", "requester_pays")
_MAPPINGS = ("client_kwargs", "config_kwargs", "s3_additional_kwargs")
_TEXTS = (*CREDENTIALS, "profile", "endpoint_url")
OPTIONS = (*CREDENTIALS, "anon", "profile", "endpoint_url", "use_ssl", "requester_pays", *_MAPPINGS)
# They say how s3fs reads, caches and lists; nothing here does it that way.
_WITHOUT_MEANING = frozenset(
    {"asynchronous", "cache_regions", "default_block_size", "default_cache_type", "default_fill_cache", "fixed_upload_size"}
    | {"listings_expiry_time", "local_expiry_check", "loop", "max_concurrency", "max_paths", "version_aware"}
)
# Words in the names that AWS, Hadoop, Iceberg, delta-rs and others have for them, the longest first.
_FOREIGN = {
    "secret": "secret",
    "sessiontoken": "token",
    "accesskey": "key",
    "accesskeyid": "key",
    "endpoint": "endpoint_url",
    "region": "client_kwargs={'region_name': …}",
    "anonymous": "anon",
    "skipsignature": "anon",
    "requesterpays": "requester_pays",
    "allowhttp": "use_ssl",
    "sslenabled": "use_ssl",
}


def parse_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options, each of its type; those without a meaning here are left out. Raises InvalidInputError."""
    parsed = {}
    for name, value in options.items():
        if name in _WITHOUT_MEANING or value is None:
            continue
        if name not in OPTIONS:
            raise InvalidInputError(
                f"S3 has no option {name!r}{meant(name)}; options are {', '.join(OPTIONS)}", kind="unknown-option"
            )
        parsed[name] = _parsed(name, value)
    return parsed


def meant(name: str) -> str:
    """``"; did you mean 'secret'?"`` for a name that is misspelt or of another tool, or nothing."""
    word = re.sub("[^a-z]", "", name.lower())
    for part, option in _FOREIGN.items():
        if part in word:
            return f"; did you mean {option}?" if "=" in option else f"; did you mean {option!r}?"
    return did_you_mean(name, OPTIONS)


def _parsed(name: str, value: Any) -> Any:
    if name in _FLAGS and isinstance(value, str):
        try:
            return parse_bool(value)
        except InvalidInputError:
            pass
    expected, words = (bool, "true or false") if name in _FLAGS else (Mapping, "a dict") if name in _MAPPINGS else (str, "a text")
    if not isinstance(value, expected):
        raise InvalidInputError(
            f"S3 option {name!r}: expected {words}, found a value of type {type(value).__name__}", kind="invalid-option"
        )
    return value
