"""What file stores, logs and catalog locks promise, as tests: subclass them for an implementation of your own."""

import pytest

# So that a failing test shows the values that it compared.
pytest.register_assert_rewrite(*(f"{__name__}.{name}" for name in ("cataloglock", "filestore", "following", "logstore")))
