"""Several new files at once: what each of them waits for (a disk, a network) is waited for together."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

MOST_AT_ONCE = 8


def write_together(write: Callable[[str, bytes], None], files: Mapping[str, bytes]) -> None:
    """``write`` each of the files by path, which must be safe from several threads. Returns when all were tried; raises the first
    error, in their order."""
    if len(files) < 2:
        for path, data in files.items():
            write(path, data)
        return
    with ThreadPoolExecutor(min(len(files), MOST_AT_ONCE)) as pool:
        tries = [pool.submit(write, path, data) for path, data in files.items()]
    for one in tries:
        one.result()
