"""The version of Spark that is installed."""

import importlib.metadata
import re


def sparkversion() -> tuple[int, int]:
    """Its first two numbers; zeros where there is none."""
    try:
        numbers = re.match(r"(\d+)\.(\d+)", importlib.metadata.version("pyspark"))
    except importlib.metadata.PackageNotFoundError:
        return 0, 0
    assert numbers
    return int(numbers[1]), int(numbers[2])
