"""The recipes for orchestrators, in environments of their own (``make test-recipes``): elsewhere there is nothing to collect."""

from importlib.util import find_spec

collect_ignore_glob = [f"test_{name}.py" for name in ("dagster", "airflow") if not find_spec(name)]
