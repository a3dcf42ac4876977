"""What each dependency of a base install weighs on disk: ``python docs/weight.py``, in an environment that has it."""

import sys
from importlib.metadata import distribution

PACKAGES = ("pyarrow", "numpy", "fastavro", "pyroaring", "sqlglot")


def megabytes(package: str) -> float:
    """The files of an installed package, in MB of a million bytes; without bytecode, which Python makes later."""
    files = distribution(package).files or ()
    return sum(file.size or 0 for file in files if file.suffix != ".pyc") / 1e6


if __name__ == "__main__":
    for package in PACKAGES:
        sys.stdout.write(f"{package:16}{megabytes(package):8.0f} MB\n")
