"""The environment of these tests."""

from tests.environment.conftest import _entry_points, duck, env, rows_of  # noqa: F401
