"""Where a table comes into being that a creation may die over: a warehouse on disk or on S3, or one whose table has a topic."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import tablestore as ts
from tablestore.io.opening import open_store
from tablestore.store.history.unfinishedbranches import walk
from tablestore.testing.kafka import KafkaBroker
from tests.integration.kafka.topics import topics
from tests.support.s3 import FakeS3

# Whatever the clocks of the store say.
LONG_AGO = timedelta(days=-20_000)


@dataclass(frozen=True, kw_only=True)
class Where:
    """A warehouse, and the options of the table; ``servers``: where its topic lies. All of it is JSON."""

    catalog: Mapping[str, Any]
    options: Mapping[str, str] = field(default_factory=dict)
    servers: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The arguments that make it."""
        return asdict(self)

    def open(self) -> ts.Catalog:
        """The catalog, as another process opens it."""
        return ts.open_catalog(dict(self.catalog))

    def left(self) -> list[str]:
        """The files of the warehouse, but the mark of its database."""
        options = {key: value for key, value in self.catalog.items() if key != "warehouse"}
        files = open_store(self.catalog["warehouse"], options)
        found = (path for info in files.list("") if info.is_dir for path, _ in walk(files, info.name))
        return [path for path in found if not path.endswith("/_database")]

    def has_topic(self) -> bool:
        """Whether the brokers have the topic of the table."""
        return self.servers is not None and self.options["log.kafka.topic"] in topics(self.servers)


@contextmanager
def where_of(kind: str, name: str, folder: Path, broker: Callable[[], KafkaBroker]) -> Iterator[Where]:
    """``local``, ``s3`` or ``kafka``; the name is this test's alone."""
    if kind == "s3":
        with FakeS3() as s3:
            # moto keeps what servers before it had.
            bucket = s3.make_bucket(name)
            yield Where(catalog={"warehouse": f"{bucket}/wh", **s3.options})
        return
    catalog = {"warehouse": str(folder / "wh")}
    if kind == "kafka":
        servers = broker().servers
        yield Where(catalog=catalog, options={"log.kafka.bootstrap.servers": servers, "log.kafka.topic": name}, servers=servers)
        return
    yield Where(catalog=catalog)


def count(catalog: ts.Catalog) -> int:
    """How many rows a reader sees; -1: there is no table."""
    try:
        return catalog.table("default.t").scan().count()
    except ts.NotFoundError:
        return -1
