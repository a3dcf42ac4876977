"""Counts the requests and the bytes of a plan of one partition on S3: a service in this process, behind HTTP (moto).

python -m benchmarks.s3requests TABLE      of the newest snapshot; prints JSON

The handle that plans has read nothing, and the table is opened by its location: that counts too.
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import tablestore as ts
from benchmarks.bench_scale import FILTERS
from benchmarks.measure import WrongRows
from benchmarks.scaletables import NAME
from tablestore.format.paths import EARLIEST_HINT, LATEST_HINT, SCHEMA_DIR, SNAPSHOT_DIR, manifest_path, snapshot_path
from tablestore.io.opening import open_store
from tablestore.store.manifests import metadata_names
from tablestore.store.scan.scanplan import plan_scan
from tablestore.types.filter.filters import parse_filter

_BUCKET = "tables"


@dataclass(slots=True)
class Traffic:
    """What a service was asked for, and the bytes of what it answered with, without headers."""

    requests: int = 0
    bytes: int = 0
    files: int = 0
    _lock: Lock = field(default_factory=Lock, repr=False)

    def count(self, size: int) -> None:
        """Take note of an answer."""
        with self._lock:
            self.requests, self.bytes = self.requests + 1, self.bytes + size


@contextmanager
def service(traffic: Traffic) -> Iterator[dict[str, Any]]:
    """A service with an empty bucket; the options for its store."""
    # Only here, and only for those who run this.
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
    from werkzeug.serving import make_server

    class Quiet(MotoRequestHandler):
        def log(self, type: str, message: str, *args: Any) -> None:
            """Requests are counted, and not told."""

    application = DomainDispatcherApplication(create_backend_app)

    def serve(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        answer = list(application(environ, start))
        traffic.count(sum(map(len, answer)))
        return answer

    server = make_server("127.0.0.1", 0, serve, threaded=True, request_handler=Quiet)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        with closing(HTTPConnection("127.0.0.1", server.server_port)) as connection:
            connection.request("PUT", f"/{_BUCKET}")
            connection.getresponse().read()
        yield {
            "key": "benchmark",
            "secret": "benchmark",
            "endpoint_url": f"http://127.0.0.1:{server.server_port}",
            "client_kwargs": {"region_name": "us-east-1"},
        }
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def measure(path: Path) -> Traffic:
    """A plan of one partition of a table of :func:`benchmarks.scaletables.build`, whose metadata is copied to the service."""
    traffic = Traffic()
    with service(traffic) as options:
        location = f"s3://{_BUCKET}/table"
        _copy(path, location, options)
        traffic.requests = traffic.bytes = 0
        context = ts.open_table(location, **options).context
        planned = plan_scan(context, context.snapshots.latest(), parse_filter(FILTERS["one partition"], context.schema.fields))
        traffic.files = planned.file_count
    return traffic


def _copy(path: Path, location: str, options: dict[str, Any]) -> None:
    """Copy what the newest snapshot needs, the hints and all schemas."""
    opened = ts.open_catalog(str(path)).table(NAME)
    context = opened.context
    snapshot = context.snapshots.latest()
    if snapshot is None:
        raise WrongRows(f"{path}: expected a table with files, found no snapshot")
    names = [snapshot.base_manifest_list, snapshot.delta_manifest_list]
    places = [manifest_path(name) for name in (*names, *metadata_names(context.manifests.all_manifests(snapshot)))]
    places += [f"{SCHEMA_DIR}/{name}" for name in context.files.names(SCHEMA_DIR)]
    places += [snapshot_path(snapshot.id), *(f"{SNAPSHOT_DIR}/{hint}" for hint in (LATEST_HINT, EARLIEST_HINT))]
    store = open_store(location, options)
    for place in places:
        if (source := Path(opened.location) / place).exists():
            store.overwrite(place, source.read_bytes())


if __name__ == "__main__":
    measured = measure(Path(sys.argv[1]))
    print(json.dumps({"requests": measured.requests, "bytes": measured.bytes, "files": measured.files}))
