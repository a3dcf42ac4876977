"""Detects a newer writer of the same stream.

Writers come one after the other, each in the place of the one before. A writer enters before each of its commits. One that nobody
knows is the last from then on. One that is known, and is not the last, learns who is, and stops. Nothing is locked: a writer that
commits while another one enters learns of it at its next commit. This finds mistakes; that nothing lands twice is for the replay
filter (:mod:`~tablestore.store.replay`) to see to.

    tablestore-marks/<of whom>/writers-<number>     a JSON list of the last writers, oldest first; published if absent, the highest
                                                    number counts
"""

import json

from tablestore.errors import FormatError, NotFoundError, StorageError
from tablestore.format.limits import parse_json_bounded
from tablestore.io.filestore import FileStore
from tablestore.names import is_number
from tablestore.store.replay import marks_directory

_PREFIX = "writers-"
# A writer that so many others have followed is forgotten.
_KEPT = 16
_TRIES = 100


class WriterFence:
    """The writers that stand for one ``user``."""

    def __init__(self, files: FileStore, user: str) -> None:
        self._files, self._directory = files, marks_directory(user)

    def enter(self, writer: str, *, again: bool = False) -> str | None:
        """Enters ``writer`` as the last one, and returns None; another one that is the last by now is returned instead.
        ``again``: it becomes the last in any case."""
        for _ in range(_TRIES):
            try:
                number, writers = self._newest()
            except NotFoundError:
                # Another one has entered between the two looks.
                continue
            if writers and writers[-1] == writer:
                return None
            if writer in writers and not again:
                return writers[-1]
            last = [*(name for name in writers if name != writer), writer][-_KEPT:]
            # The next look says whether it was this call that published it, and if a higher one is there by now.
            if self._files.publish_if_absent(self._path(number + 1), json.dumps(last).encode()):
                self._remove(below=number + 1)
        raise StorageError(f"{self._files.root_uri}/{self._directory}: {_TRIES} others entered meanwhile; try again", kind="busy")

    def _newest(self) -> tuple[int, list[str]]:
        number = max((int(name.removeprefix(_PREFIX)) for name in self._names()), default=0)
        path = self._path(number)
        return (number, _parse(self._files.read(path), path)) if number else (0, [])

    def _remove(self, *, below: int) -> None:
        for name in self._names():
            if int(name.removeprefix(_PREFIX)) < below:
                self._files.delete(f"{self._directory}/{name}")

    def _names(self) -> list[str]:
        return [name for name in self._files.names(self._directory, _PREFIX) if is_number(name.removeprefix(_PREFIX))]

    def _path(self, number: int) -> str:
        return f"{self._directory}/{_PREFIX}{number:020d}"


def _parse(data: bytes, path: str) -> list[str]:
    try:
        writers = parse_json_bounded(data, path)
    except FormatError as error:
        raise FormatError(f"{path}: expected a JSON list of names, found {data[:80]!r}") from error
    if not isinstance(writers, list) or not all(isinstance(name, str) for name in writers):
        raise FormatError(f"{path}: expected a JSON list of names, found {data[:80]!r}")
    return writers
