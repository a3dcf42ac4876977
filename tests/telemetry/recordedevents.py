"""Events of runs as they are on the wire, each checked by the schemas of OpenLineage's specification."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from openlineage.client.event_v2 import RunEvent
from openlineage.client.serde import Serde
from referencing import Registry, Resource

import tablestore as ts
from tablestore.clock import SystemClock
from tablestore.environment.engine import QueryEngine
from tablestore.ids import SystemIds
from tablestore.telemetry.lineagesender import OpenLineage
from tablestore.telemetry.observers import Observers

SCHEMAS = {
    schema["$id"]: schema
    for schema in map(json.loads, (p.read_text() for p in (Path(__file__).parent / "openlineage").glob("*.json")))
}
REGISTRY: Registry = Registry().with_resources((name, Resource.from_contents(schema)) for name, schema in SCHEMAS.items())
(SPEC,) = (name for name in SCHEMAS if name.endswith("/OpenLineage.json"))


def check_event(event: dict[str, Any]) -> None:
    """By the schema of events, and each facet by its own, which it names."""
    Draft202012Validator({"$ref": f"{SPEC}#/$defs/RunEvent"}, registry=REGISTRY).validate(event)
    holders = [event["run"], event["job"], *event["inputs"], *event["outputs"]]
    facets = [
        facet for one in holders for group in ("facets", "outputFacets", "inputFacets") for facet in one.get(group, {}).values()
    ]
    assert facets
    for facet in facets:
        assert facet["_producer"] == event["producer"] or "OpenLineage/tree" in facet["_producer"], "ours, or the client's own"
        Draft202012Validator({"$ref": facet["_schemaURL"]}, registry=REGISTRY).validate(facet)


class Kept:
    """A client that keeps events as what they are on the wire."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def emit(self, event: RunEvent) -> None:
        self.events.append(json.loads(Serde.to_json(event)))


class Recorded:
    """An environment whose lineage is kept."""

    def __init__(self, place: Path, engine: str | QueryEngine = "duckdb") -> None:
        self.client = Kept()
        self.lineage = OpenLineage(SystemClock(), SystemIds(), lambda: self.client)
        self.catalog = ts.open_catalog(place / "wh", observers=Observers(lineage=self.lineage))
        self.env = ts.TableEnvironment.create(self.catalog, engine=engine)
        self.run("CREATE TABLE s (id BIGINT PRIMARY KEY NOT ENFORCED, price DOUBLE, item STRING) WITH ('bucket' = '1')")
        self.run("CREATE TABLE t (id BIGINT PRIMARY KEY NOT ENFORCED, price DOUBLE, item STRING) WITH ('bucket' = '1')")
        self.run("INSERT INTO s VALUES (1, 2.0, 'a'), (2, 3.0, 'b')")

    def run(self, text: str) -> Any:
        return self.env.execute_sql(text)

    def events(self) -> list[dict[str, Any]]:
        self.lineage.close()
        return self.client.events

    def of(self, run: Callable[[], object]) -> list[dict[str, Any]]:
        """The events of what is run, each checked."""
        before = len(self.events())
        run()
        events = self.events()[before:]
        for event in events:
            check_event(event)
        return events


def names(datasets: list[dict[str, Any]]) -> list[str]:
    """The names in the catalog."""
    return [one["facets"]["symlinks"]["identifiers"][0]["name"] for one in datasets]


def ways(fields: list[dict[str, Any]]) -> set[tuple[str, str, str]]:
    """The columns of inputs, with each way in which they go in."""
    return {(one["field"], way["type"], way["subtype"]) for one in fields for way in one["transformations"]}
