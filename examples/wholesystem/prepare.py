"""Prepares what a service of docker-compose.yml needs, and becomes the service.

    python -m examples.wholesystem.prepare --bucket lake --token-file FILE python -m tablestore serve --warehouse … --storage …

It makes the bucket of the warehouse and a token of an administrator, each if it is not there, and then runs the command in its own
place: signals reach it. The token lies in the warehouse's catalog, which the ``--warehouse`` and ``--storage`` of the command name.
The address and the keys of S3 are those of the environment, as for other programs of AWS.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError
from botocore.session import Session

TOKEN_NAME = "laptop"
_CATALOG_OPTIONS = ("--warehouse", "--storage")
_BUCKET_IS_THERE = ("BucketAlreadyOwnedByYou", "BucketAlreadyExists")


def make_bucket(name: str) -> None:
    """Makes a bucket unless it is there. Raises botocore's errors."""
    try:
        Session().create_client("s3").create_bucket(Bucket=name)
    except ClientError as error:
        if error.response["Error"]["Code"] not in _BUCKET_IS_THERE:
            raise


def keep_token(file: Path, catalog_options: Sequence[str]) -> None:
    """Makes a token of an administrator and writes it into the file, unless the token of the file is a live one of the catalog."""
    known = [one["id"] for one in _token_command(catalog_options, "list")["tokens"] if one["name"] == TOKEN_NAME]
    if known and file.exists():
        return
    # A token whose text is lost opens nothing for its owner, and should for nobody else.
    for token in known:
        _token_command(catalog_options, "revoke", token)
    text = _token_command(catalog_options, "create", "--role", "admin", "--name", TOKEN_NAME, "--expires", "never")["token"]
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as written:
        written.write(f"{text}\n")


def catalog_options(command: Sequence[str]) -> list[str]:
    """The options of a command that name its catalog, in their order."""
    return [word for option, value in pairwise(command) if option in _CATALOG_OPTIONS for word in (option, value)]


def _token_command(catalog: Sequence[str], *words: str) -> dict[str, Any]:
    """The document that a command of `tablestore token` prints; its messages go where this program's go."""
    command = [sys.executable, "-m", "tablestore", "token", *words, *catalog, "--json"]
    return dict(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout))


def main(arguments: Sequence[str]) -> None:
    """Does not return: the process becomes the command."""
    parser = argparse.ArgumentParser(prog="python -m examples.wholesystem.prepare", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--bucket", required=True)
    parser.add_argument("--token-file", required=True, type=Path)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    chosen = parser.parse_args(arguments)
    make_bucket(chosen.bucket)
    keep_token(chosen.token_file, catalog_options(chosen.command))
    os.execvp(chosen.command[0], chosen.command)


if __name__ == "__main__":
    main(sys.argv[1:])
