"""Writes HTML and SVG with every text escaped, and shows objects in notebooks: as a title and a small table, or as they print."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape


class HtmlText(str):
    """A text that is HTML: what it was made from is escaped. Templates that escape by themselves leave it as it is."""

    __slots__ = ()

    def __html__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return str(self)


def html_element(tag: str, attributes: Mapping[str, object] | None = None, *children: object) -> HtmlText:
    """An element of HTML or SVG. Attributes that are None are left out; children are escaped, unless they are HTML already."""
    pairs = "".join(f' {name}="{escape(_text(value))}"' for name, value in (attributes or {}).items() if value is not None)
    return HtmlText(f"<{tag}{pairs}>{html_join(children)}</{tag}>")


def html_join(parts: Iterable[object]) -> HtmlText:
    """Parts one behind the other; texts are escaped, unless they are HTML already."""
    return HtmlText("".join(part if isinstance(part, HtmlText) else escape(str(part)) for part in parts))


def _text(value: object) -> str:
    """A number of a picture with at most two digits behind the point."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def html_card(kind: str, name: str, rows: Mapping[str, object]) -> str:
    """An object as HTML: a title and a table of what is known of it."""
    lines = "".join(
        f"<tr><th style='text-align:left'>{escape(str(key))}</th><td style='text-align:left'>{escape(str(value))}</td></tr>"
        for key, value in rows.items()
    )
    return f"<div><b>{escape(kind)}</b> {escape(name)}<table>{lines}</table></div>"


def html_table(heads: Sequence[str], rows: Iterable[Sequence[object]], numbers: Collection[int] = ()) -> HtmlText:
    """Rows below the names of their columns. ``numbers``: the places of columns that stand to the right."""

    def cells(tag: str, texts: Iterable[object]) -> list[HtmlText]:
        return [
            html_element(tag, {"style": f"text-align:{'right' if place in numbers else 'left'}"}, text)
            for place, text in enumerate(texts)
        ]

    lines = [html_element("tr", None, *cells("td", row)) for row in rows]
    head = html_element("thead", None, html_element("tr", None, *cells("th", heads)))
    return html_element("table", None, head, html_element("tbody", None, *lines))


class PrintedInNotebooks:
    """A value that notebooks show as it prints."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"
