"""Parses the modules of the project, for tests that read its source."""

import ast
import gc
from pathlib import Path


def parsed(source: Path | str | bytes) -> ast.Module:
    """The tree of a module: of a file, or of a text.

    No garbage is collected meanwhile. What is collected may run code, and Python 3.11 raises SystemError ("AST constructor
    recursion depth mismatch") where that code parses too, as a thread of another test may: https://github.com/python/cpython/issues/106905
    """
    text = source.read_text("utf-8") if isinstance(source, Path) else source
    enabled = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(text, str(source) if isinstance(source, Path) else "<text>")
    finally:
        if enabled:
            gc.enable()
