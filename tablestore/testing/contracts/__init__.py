"""Holds file stores, logs and catalog locks to what they promise: subclass them for an implementation of your own."""

import pytest

# So that a failing test shows the values that it compared.
pytest.register_assert_rewrite(*(f"{__name__}.{name}" for name in ("cataloglock", "filestore", "following", "logstore")))
