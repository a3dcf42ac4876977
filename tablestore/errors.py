"""Errors that tablestore raises: one tree, a class for each thing a caller can do next.

    TablestoreError
    ├── ConflictError           another commit changed what this one read or deletes; retry from a fresh snapshot
    ├── CommitOutcomeUnknown    the commit may or may not have landed; look for its uuid before repeating it
    ├── NotFoundError           a database, table, snapshot, column or file that does not exist
    ├── AlreadyExistsError      a name that is taken
    ├── InvalidInputError       the caller's rows, names, filters or options are wrong
    ├── FormatError             bytes that cannot be what they should be: corrupt, truncated, too new, over a limit
    ├── StorageError            the store failed: often transient, nothing was decided
    └── UnsupportedError        well-formed, but outside of what tablestore does

Every message says what was expected, what was found, where, and what to do next. ``kind`` is a stable
short string for programs (``"checksum"``, ``"unknown-option"``, …); the message is for people, and without secrets.
"""

from tablestore.redaction import without_secrets


class TablestoreError(Exception):
    """Base of all errors of this package; catch it to catch everything that tablestore reports."""

    default_kind = "error"

    def __init__(self, message: str, *, kind: str | None = None) -> None:
        # What is passed on from a driver or a store may hold the address that it was given, with its password.
        self.message = without_secrets(message)
        super().__init__(self.message)
        self.kind = kind or self.default_kind

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions cross process boundaries (Spark workers, pools): keep the keyword-only ``kind``.
        return _rebuild, (type(self), self.message, self.kind)


def _rebuild(cls: type[TablestoreError], message: str, kind: str) -> TablestoreError:
    return cls(message, kind=kind)


class ConflictError(TablestoreError):
    """Another commit changed what this one read or deletes; nothing of this one is visible."""

    default_kind = "conflict"


class CommitOutcomeUnknown(TablestoreError):
    """The store neither confirmed nor denied the publish; no file was deleted."""

    default_kind = "commit-outcome-unknown"


class NotFoundError(TablestoreError, LookupError):
    """The named object does not exist."""

    default_kind = "not-found"


class AlreadyExistsError(TablestoreError):
    """A name is already taken."""

    default_kind = "already-exists"


class InvalidInputError(TablestoreError, ValueError):
    """The caller's input is wrong; nothing was written."""

    default_kind = "invalid-input"


class FormatError(TablestoreError):
    """A file's bytes are not what its name or its reference promises."""

    default_kind = "corrupt"


class StorageError(TablestoreError, OSError):
    """The file store failed; the state that it holds is whatever it was before."""

    default_kind = "storage"


class UnsupportedError(TablestoreError):
    """Well-formed input that asks for something tablestore does not do."""

    default_kind = "unsupported"
