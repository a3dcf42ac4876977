"""Classifies operating system errors as ours: gone, denied, exhausted, or failed."""

import errno

from tablestore.errors import (
    AlreadyExistsError,
    FormatError,
    InvalidInputError,
    NotFoundError,
    StorageError,
    TablestoreError,
    UnsupportedError,
)

# A path below a file, or a directory in place of a file, is "no file of that name", as on an object store.
_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR})
_DENIED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_EXHAUSTED = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EFBIG})

_NEXT_STEP = {
    errno.ENOSPC: "free some space and repeat",
    errno.EDQUOT: "raise the quota or free some space, and repeat",
    errno.EMFILE: "raise the limit of open files (ulimit -n) or use fewer threads, and repeat",
    errno.ENFILE: "raise the system's limit of open files, and repeat",
    errno.EROFS: "mount the file system writable",
}


def is_gone(error: OSError) -> bool:
    """True if the error says that there is no such file, and nothing else."""
    return error.errno in _GONE or isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError)


def translated(error: OSError, *, verb: str, where: str) -> TablestoreError:
    """Our error for ``error``; the caller raises it ``from`` the original."""
    if isinstance(error, TablestoreError):
        return error
    reason = error.strerror or str(error) or type(error).__name__
    message = f"cannot {verb} {where}: {reason}"
    if is_gone(error):
        return NotFoundError(f"{message}; expected a file there, check the path or whether it was expired or dropped")
    if error.errno == errno.EEXIST or isinstance(error, FileExistsError):
        return AlreadyExistsError(f"{message}; files are written once, use another name")
    if error.errno == errno.ENAMETOOLONG:
        return InvalidInputError(f"{message}; use shorter names", kind="path")
    if error.errno == errno.ELOOP:
        return InvalidInputError(f"{message}; remove the symbolic link", kind="path")
    if error.errno in _DENIED or isinstance(error, PermissionError):
        step = _NEXT_STEP.get(error.errno or 0, "give this user access to it")
        return StorageError(f"{message}; {step}", kind="denied")
    if error.errno in _EXHAUSTED:
        step = _NEXT_STEP.get(error.errno or 0, "free the resource and repeat")
        return StorageError(f"{message}; {step}", kind="exhausted")
    return StorageError(f"{message}; the store failed, repeat when it is well")


def occupied(where: str) -> AlreadyExistsError:
    """The error for a new file whose name is taken."""
    return AlreadyExistsError(f"cannot write {where}: it exists, and files are written once; use another name")


def unknown_outcome(where: str, reason: str) -> StorageError:
    """The error for a publish that may or may not have been applied."""
    return StorageError(
        f"publishing {where} neither succeeded nor failed for sure: {reason}; repeat it with the same bytes, "
        "and if the name is then occupied compare the content",
        kind="unknown-outcome",
    )


def no_conditional_publish(where: str, reason: str) -> UnsupportedError:
    """The error for a publish that could replace another one."""
    return UnsupportedError(
        f"cannot commit at {where}: {reason}, so a commit could silently replace another one. Open it with a lock that all writers "
        "share (option catalog.lock.type = file or sql, and catalog.lock.location), read only, or move the table to another store",
        kind="no-conditional-publish",
    )


def too_large(where: str, *, size: int, max_bytes: int) -> FormatError:
    """The error for a file that a reader refuses to take into memory."""
    return FormatError(
        f"{where} has {size} bytes, more than the {max_bytes} that are read at once; it is either damaged or "
        "not the file that its name promises",
        kind="too-large",
    )
