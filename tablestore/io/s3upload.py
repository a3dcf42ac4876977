"""Uploads one S3 object as a writable file, which becomes the object when it is finished, however large it grows.

Up to one part it is a single conditional PUT; beyond that a multi-part upload, completed conditionally.
Several small files are sent at once: their answers are waited for together.
"""

import io
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tablestore.errors import NotFoundError, StorageError
from tablestore.io.oserrors import unknown_outcome

PART_BYTES = 16 * 1024 * 1024
"""S3 takes 10,000 parts, so a file may have 160 GB."""
MOST_AT_ONCE = 8


class MultipartWriter(io.RawIOBase):
    """``call(method, **arguments)`` sends a request about the object; ``write_small(data)`` makes it in one go."""

    def __init__(self, call: Callable[..., Any], write_small: Callable[[bytes], None], *, part_bytes: int = PART_BYTES) -> None:
        super().__init__()
        self._call = call
        self._write_small = write_small
        self._part_bytes = part_bytes
        self._buffer = bytearray()
        self._position = 0
        self._upload_id: str | None = None
        self._parts: list[dict[str, Any]] = []

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def write(self, data: Any) -> int:
        if self.closed:
            raise ValueError("write to a closed file")
        view = memoryview(data).cast("B")
        self._buffer += view
        self._position += len(view)
        while len(self._buffer) >= self._part_bytes:
            self._upload_part(bytes(self._buffer[: self._part_bytes]))
            del self._buffer[: self._part_bytes]
        return len(view)

    def finish(self) -> bool:
        """Make the object appear; False if somebody else made one of that name meanwhile."""
        self.close()
        if self._upload_id is None:
            self._write_small(bytes(self._buffer))
            return True
        if self._buffer:
            self._upload_part(bytes(self._buffer))
        try:
            self._call(
                "complete_multipart_upload",
                UploadId=self._upload_id,
                MultipartUpload={"Parts": self._parts},
                IfNoneMatch="*",
            )
        except NotFoundError as error:
            # The upload is gone, so an earlier attempt, whose answer was lost, has completed it: or it expired.
            if self._call("head_object")["ContentLength"] != self._position:
                raise unknown_outcome("a large file", "its upload is gone and another file has its name") from error
        except StorageError as error:
            if error.kind == "occupied":
                return False
            raise
        self._upload_id = None
        return True

    def abort(self) -> None:
        """Drop the uploaded parts."""
        self._buffer.clear()
        self.close()
        if self._upload_id is not None:
            self._call("abort_multipart_upload", UploadId=self._upload_id)
            self._upload_id = None

    def _upload_part(self, data: bytes) -> None:
        if self._upload_id is None:
            self._upload_id = self._call("create_multipart_upload")["UploadId"]
        number = len(self._parts) + 1
        answer = self._call("upload_part", UploadId=self._upload_id, PartNumber=number, Body=data)
        self._parts.append({"PartNumber": number, "ETag": answer["ETag"]})


def write_together(write: Callable[[str, bytes], None], files: Mapping[str, bytes]) -> None:
    """``write`` each of the files by path, which must be safe from several threads. Returns when all were tried; raises the first
    error, in their order."""
    if len(files) < 2:
        for path, data in files.items():
            write(path, data)
        return
    with ThreadPoolExecutor(min(len(files), MOST_AT_ONCE)) as pool:
        tries = [pool.submit(write, path, data) for path, data in files.items()]
    for attempt in tries:
        attempt.result()
