"""Holds who watches the tables of one catalog: nobody, unless its options or its caller say so."""

from dataclasses import dataclass

from tablestore.clock import Clock
from tablestore.ids import Ids
from tablestore.lazy import imported, missing_package
from tablestore.telemetry.lineage import Lineage
from tablestore.telemetry.tracing import Tracer

EXTRA = "'managed-tablestore[telemetry]'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observers:
    """A tracer of operations and a recorder of lineage; None: nobody. They stay in their process."""

    tracer: Tracer | None = None
    lineage: Lineage | None = None

    def close(self) -> None:
        """Waits a moment until what was recorded is sent."""
        if self.lineage is not None:
            self.lineage.close()


NOBODY = Observers()


def observers(clock: Clock, ids: Ids, *, opentelemetry: bool, openlineage: bool) -> Observers:
    """The observers that options ask for. Raises UnsupportedError where their packages are missing."""
    if not (opentelemetry or openlineage):
        return NOBODY
    return Observers(
        tracer=_opened("opentelemetry", "tablestore.telemetry.otelspans:OpenTelemetryTracer")(clock) if opentelemetry else None,
        lineage=_opened("openlineage", "tablestore.telemetry.lineagesender:OpenLineage")(clock, ids) if openlineage else None,
    )


def _opened(option: str, place: str) -> type:
    try:
        opened: type = imported(place)
    except ImportError as error:
        package = "opentelemetry-api" if option == "opentelemetry" else "openlineage-python"
        raise missing_package(f"telemetry.{option} = true needs the package {package}", EXTRA, error) from error
    return opened
