"""What the table has to hold at a moment: plain pandas over the raw data, with nothing of tablestore in it."""

import zipfile
from pathlib import Path

import pandas as pd
import pyarrow as pa

from examples.flights.dataset import KEY, OF_ARRIVAL, OF_DEPARTURE, SCHEMA


def read_raw(archive: Path) -> pd.DataFrame:
    """The data as pandas reads it, by its own parser; a missing value (NA in the file) is NaN."""
    with zipfile.ZipFile(archive) as files, files.open("flights.csv") as file:
        return pd.read_csv(file, parse_dates=["time_hour"], keep_default_na=False, na_values=["NA"])


def flights_at(raw: pd.DataFrame, *, departed: int, arrived: int, cancelled: int, diverted: bool = False) -> pd.DataFrame:
    """The flights when departures, arrivals and cancellations are known up to and including these months (0: none).

    ``diverted``: those that left and did not arrive where they should have are marked.
    """
    state = raw.copy()
    left, landed = raw["dep_time"].notna(), raw["arr_delay"].notna()
    knows_departure = left & (raw["month"] <= departed)
    knows_arrival = landed & (raw["month"] <= arrived)
    state["status"] = "scheduled"
    state.loc[knows_departure, "status"] = "diverted" if diverted else "departed"
    state.loc[knows_arrival, "status"] = "arrived"
    state.loc[~knows_departure, list(OF_DEPARTURE)] = None
    state.loc[~knows_arrival, list(OF_ARRIVAL)] = None
    return state[left | (raw["month"] > cancelled)]


def difference(actual: pa.Table, expected: pd.DataFrame) -> str | None:
    """None when both hold the same rows in any order, else what differs first."""
    wanted = pa.Table.from_pandas(expected[SCHEMA.names], schema=SCHEMA, preserve_index=False)
    if actual.num_rows != wanted.num_rows:
        return f"{actual.num_rows:,} rows where pandas has {wanted.num_rows:,}"
    order = [(name, "ascending") for name in KEY]
    ours, theirs = actual.sort_by(order), wanted.sort_by(order)
    for name, kind in zip(SCHEMA.names, SCHEMA.types, strict=True):
        if not ours[name].cast(kind).equals(theirs[name]):
            return f"column {name} differs from what pandas has"
    return None
