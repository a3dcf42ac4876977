"""Lists the files that a command line names. Files, folders and patterns, here or in an object store.

    orders.csv                the file, whatever characters its name has
    exports/                  all files below the folder that look like rows, without hidden ones (. and _ in front)
    exports/*/2026-*.csv      what matches: * and ? and [ab] in one part of the path, ** over any number of folders

In the order of their names. The shell does the same for local patterns without quotes; here it is done for quoted ones and URLs.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase

from tablestore.errors import InvalidInputError, NotFoundError
from tablestore.io.filestore import FileStore
from tablestore.io.opening import open_store

_WILD = "*?["


def find_files(names: Sequence[str], looks_like_rows: Callable[[str], bool]) -> list[str]:
    """The files behind names. Raises NotFoundError for a pattern or a folder that holds none, InvalidInputError."""
    paths: list[str] = []
    for name in names:
        paths += _expanded(name, looks_like_rows)
    return paths


def _expanded(name: str, looks_like_rows: Callable[[str], bool]) -> list[str]:
    local = "://" not in name
    if name == "-" or (local and os.path.isfile(name)):
        return [name]
    if (local and os.path.isdir(name)) or name.endswith("/"):
        return _below(name.rstrip("/") or "/", looks_like_rows)
    head, pattern = _split(name)
    if not pattern:
        if local and not os.path.exists(name):
            raise NotFoundError(f"no file {name!r}", kind="no-files")
        return [name]
    if "://" in pattern[0] or head.endswith(":/"):
        raise InvalidInputError(f"expected a pattern inside a bucket or folder, found {name!r}")
    paths = [f"{head}/{path}" if head else path for path in sorted(set(_matching(open_store(head or "."), "", pattern)))]
    if not paths:
        raise NotFoundError(f"no file matches {name!r}", kind="no-files")
    return paths


def _below(folder: str, looks_like_rows: Callable[[str], bool]) -> list[str]:
    files = (path for path in _walk(open_store(folder), "") if looks_like_rows(path))
    paths = sorted(f"{folder}/{path}" for path in files)
    if not paths:
        raise NotFoundError(
            f"the folder {folder} holds no files of rows (by their names: .parquet, .csv, .json and the like); name the files, or "
            f"a pattern such as '{folder}/*', with --file-format",
            kind="no-files",
        )
    return paths


def _walk(files: FileStore, directory: str) -> Iterator[str]:
    for info in files.list(directory):
        if info.name.startswith((".", "_")):
            continue
        path = f"{directory}/{info.name}" if directory else info.name
        if info.is_dir:
            yield from _walk(files, path)
        else:
            yield path


def _split(name: str) -> tuple[str, list[str]]:
    """The folder above the first part that is a pattern, and the parts from there on."""
    parts = name.split("/")
    first = next((number for number, part in enumerate(parts) if any(sign in part for sign in _WILD)), len(parts))
    head = "/".join(parts[:first])
    return ("/" if not head and first == 1 else head), parts[first:]


def _matching(files: FileStore, directory: str, pattern: Sequence[str]) -> Iterator[str]:
    part, *rest = pattern
    if part == "**":
        yield from _matching(files, directory, rest or ["*"])
    for info in files.list(directory):
        if info.name.startswith(".") and not part.startswith("."):
            continue
        path = f"{directory}/{info.name}" if directory else info.name
        if part == "**":
            if info.is_dir:
                yield from _matching(files, path, pattern)
        elif fnmatchcase(info.name, part):
            if rest and info.is_dir:
                yield from _matching(files, path, rest)
            elif not rest and not info.is_dir:
                yield path
