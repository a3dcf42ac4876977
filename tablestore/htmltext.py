"""Shows objects in notebooks: as a title and a small table, or as they print."""

from collections.abc import Mapping
from html import escape


def html_card(kind: str, name: str, rows: Mapping[str, object]) -> str:
    """An object as HTML: a title and a table of what is known of it."""
    lines = "".join(
        f"<tr><th style='text-align:left'>{escape(str(key))}</th><td style='text-align:left'>{escape(str(value))}</td></tr>"
        for key, value in rows.items()
    )
    return f"<div><b>{escape(kind)}</b> {escape(name)}<table>{lines}</table></div>"


class PrintedInNotebooks:
    """A value that notebooks show as it prints."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"
