"""What a test does when a service or library that it needs is absent: skip on a laptop, fail where CI says so."""

from collections.abc import Mapping
from typing import NoReturn

import pytest


def require_service(reason: str, fix: str, *, env: Mapping[str, str]) -> NoReturn:
    """End the test: failed if ``env`` has a non-empty ``CI``, else skipped; both name the command that fixes it."""
    message = f"{reason}; fix: {fix}"
    if env.get("CI"):
        pytest.fail(message, pytrace=False)
    pytest.skip(message)
