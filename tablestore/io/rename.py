"""Rename without replacing, for file systems that have no hard links: Linux ``renameat2(RENAME_NOREPLACE)``.

``os.rename`` silently replaces what is there, so it can lose a peer's acknowledged commit; Python offers no
other rename, hence the call into the C library.
"""

import ctypes
import errno
import os

from tablestore.errors import UnsupportedError

_AT_FDCWD = -100
_RENAME_NOREPLACE = 1
_CANNOT = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})


def rename_if_absent(source: str, target: str) -> None:
    """Rename ``source`` to ``target``; FileExistsError if ``target`` is there, UnsupportedError if it cannot be had."""
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "renameat2"):
        raise _unsupported(target)
    failed = library.renameat2(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), _RENAME_NOREPLACE)
    if failed:
        code = ctypes.get_errno()
        if code in _CANNOT:
            raise _unsupported(target)
        raise OSError(code, os.strerror(code), target)


def _unsupported(target: str) -> UnsupportedError:
    return UnsupportedError(
        f"the file system of {target} has neither hard links nor a rename that does not replace, so a commit "
        "cannot be published safely there; open the catalog with a lock or move the table to another file system",
        kind="no-conditional-publish",
    )
