"""Starts the system's browser for a test: Playwright drives it, and downloads none of its own."""

import importlib
import importlib.util
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.support.services import require_service

FIX = "pip install playwright, and apt-get install chromium (on Debian and Ubuntu)"
_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


def why_no_browser(has_package: Callable[[str], object], path_of: Callable[[str], str | None]) -> str | None:
    """Why no page can be opened here, or None. ``path_of``: where a program lies."""
    if not has_package("playwright"):
        return "the package playwright is not installed"
    if not any(map(path_of, _PROGRAMS)):
        return "there is no Chromium"
    return None


@contextmanager
def open_browser(env: Mapping[str, str]) -> Iterator[Any]:
    """A headless browser, as Playwright's ``Browser``; without one the test fails in CI and is skipped elsewhere."""
    if (reason := why_no_browser(importlib.util.find_spec, shutil.which)) is not None:
        require_service(reason, FIX, env=env)
    program = next(filter(None, map(shutil.which, _PROGRAMS)))
    with importlib.import_module("playwright.sync_api").sync_playwright() as playwright:
        # Chromium's sandbox needs what a container and root lack; the pages are our own.
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()
