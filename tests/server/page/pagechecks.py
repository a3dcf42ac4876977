"""Checks the HTML of a page: it is whole, harmless, and can be used with a keyboard and a screen reader."""

from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import pairwise

VOID = {"meta", "link", "img", "input", "br", "wbr"}
FIELDS = {"input", "select", "textarea"}


@dataclass
class PageFacts(HTMLParser):
    """What a page holds, read by the parser of the standard library."""

    elements: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    script: str = ""
    _open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        if len(names) != len(set(names)):
            self.faults.append(f"an attribute twice in <{tag}>")
        self.elements.append((tag, {name: value or "" for name, value in attrs} | {"": ">".join(self._open)}))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.faults.append(f"</{tag}> closes something else")

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if self._open and self._open[-1] == "script":
            self.script += data.strip()


def facts_of(page: str) -> PageFacts:
    """The facts of a page, with its faults."""
    facts = PageFacts()
    facts.feed(page)
    facts.close()
    if facts._open:
        facts.faults.append(f"not closed: {facts._open}")
    return facts


def faults_in(page: str) -> list[str]:
    """All that is wrong with a page."""
    facts = facts_of(page)
    faults, elements = list(facts.faults), facts.elements
    if facts.script:
        faults.append("an inline script")
    for tag, attributes in elements:
        faults += [f"<{tag} {name}>" for name in attributes if name == "style" or name.startswith("on")]
        faults += [
            f"<{tag} {name}={text!r}> leads elsewhere"
            for name, text in attributes.items()
            if name in ("href", "src", "action", "data-events") and ("//" in text or text.startswith(("javascript:", "data:")))
        ]
    ids = Counter(attributes["id"] for _, attributes in elements if "id" in attributes)
    faults += [f"the id {name} is there {count} times" for name, count in ids.items() if count > 1]
    for _, attributes in elements:
        for name in ("aria-labelledby", "for", "list"):
            if attributes.get(name) and attributes[name] not in ids:
                faults.append(f"{name}={attributes[name]} is nowhere")
    levels = [int(tag[1]) for tag, _ in elements if tag in ("h1", "h2", "h3", "h4")]
    if levels[:1] != [1] or levels.count(1) != 1:
        faults.append(f"headings begin with {levels[:3]}")
    faults += [f"a heading of level {after} behind one of {before}" for before, after in pairwise(levels) if after > before + 1]
    labelled = {attributes.get("for") for tag, attributes in elements if tag == "label"}
    for tag, attributes in elements:
        if tag in FIELDS and attributes.get("id") not in labelled and "label" not in attributes[""].split(">"):
            faults.append(f"<{tag} id={attributes.get('id')}> has no label")
        if tag == "table" and not any(other == "caption" for other, _ in elements):
            faults.append("a table without a caption")
    tags = [tag for tag, _ in elements]
    faults += [f"no <{tag}>" for tag in ("main", "header", "footer", "nav", "title") if tag not in tags]
    if ("html", "en") not in [(tag, attributes.get("lang")) for tag, attributes in elements]:
        faults.append("no language")
    return faults
