"""Publishes a finished file under its name, unless the name is taken: by a hard link, or a rename that never replaces.

``os.rename`` silently replaces what is there, so it can lose a peer's acknowledged commit. Where there are no
hard links Linux still has ``renameat2(RENAME_NOREPLACE)``; Python does not offer it, hence the call into the C
library.
"""

import ctypes
import errno
import os

from tablestore.io.oserrors import no_conditional_publish, translated, unknown_outcome

_AT_FDCWD = -100
_RENAME_NOREPLACE, _RENAME_EXCHANGE = 1, 2
_CANNOT = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})

NO_HARD_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})
# With these errors the kernel has certainly not made the name; with any other one it may have.
_NOT_APPLIED = frozenset(
    {
        errno.EACCES,
        errno.EDQUOT,
        errno.ELOOP,
        errno.EMLINK,
        errno.ENAMETOOLONG,
        errno.ENOENT,
        errno.ENOSPC,
        errno.ENOTDIR,
        errno.EROFS,
        errno.EXDEV,
    }
)


def link_if_absent(temporary: str, final: str) -> bool:
    """Give the finished file its name; whether this call did. StorageError of kind "unknown-outcome" if undecided."""
    try:
        try:
            os.link(temporary, final)
        except OSError as error:
            if error.errno not in NO_HARD_LINKS:
                raise
            if not rename_if_absent(temporary, final):
                reason = "its file system has neither hard links nor a rename that does not replace"
                raise no_conditional_publish(final, reason) from None
        return True
    except OSError as error:
        if error.errno == errno.EEXIST:
            # A network file system may apply a link, lose the answer, and refuse its own repetition.
            return _is_same_file(temporary, final)
        if error.errno in _NOT_APPLIED:
            raise translated(error, verb="publish", where=final) from error
        raise unknown_outcome(final, error.strerror or str(error)) from error


def rename_alone(temporary: str, final: str) -> bool:
    """Renames where :func:`link_if_absent` links, while nobody else gives that name away: for file systems that lack both of
    its ways."""
    if os.path.lexists(final):
        return False
    try:
        os.rename(temporary, final)
    except OSError as error:
        if error.errno in _NOT_APPLIED:
            raise translated(error, verb="publish", where=final) from error
        raise unknown_outcome(final, error.strerror or str(error)) from error
    return True


def _is_same_file(one: str, other: str) -> bool:
    try:
        return os.path.samestat(os.lstat(one), os.lstat(other))
    except OSError:
        return False


def rename_if_absent(source: str, target: str) -> bool:
    """Rename ``source`` to ``target``; FileExistsError if ``target`` is there, False if there is no such rename here."""
    return _renamed(source, target, _RENAME_NOREPLACE)


def exchange(one: str, other: str) -> bool:
    """Let two names change places in one step; False if there is no such rename here."""
    return _renamed(one, other, _RENAME_EXCHANGE)


def _renamed(source: str, target: str, flag: int) -> bool:
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "renameat2"):
        return False
    failed = library.renameat2(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), flag)
    if failed:
        code = ctypes.get_errno()
        if code in _CANNOT:
            return False
        raise OSError(code, os.strerror(code), target)
    return True
