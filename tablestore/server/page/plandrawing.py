"""Draws the plan of a query: reads the tree of boxes that DuckDB prints, and draws it as SVG. Pure.

╭─ Hash Join ──────────╮        a box is a child of the last box above it that begins left of it, or where it begins
│ Conditions: v = v    │
╰───────────┬──────────╯
            ├──────────────╮
╭─ Read ────┴──╮  ╭─ Read ──╮
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tablestore.htmltext import HtmlText, html_element, html_join

_TOP = re.compile(r"[┌╭](?P<head>[^╮┐\n]*)[╮┐]")
_BOTTOM = "└╰"
_RULES = "─┴┬│├┤╴╶ "
_MOST_BOXES = 200
_WIDTH, _LINE, _PADDING, _ACROSS, _DOWN, _EDGE = 236, 16, 12, 24, 34, 8
_MOST_FACTS, _CHARACTERS = 4, 33


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStep:
    """One step of a plan. ``parent``: the place of the step that reads it, None for the last step."""

    title: str
    facts: tuple[str, ...]
    parent: int | None
    depth: int


def plan_steps(text: str) -> tuple[PlanStep, ...]:
    """The steps of a plan, each behind its parent; none where the text holds no boxes that are understood."""
    lines = text.split("\n")
    steps: list[PlanStep] = []
    above: list[tuple[int, int]] = []
    row = 0
    while row < len(lines):
        tops = [match for match in _TOP.finditer(lines[row]) if set(match["head"]) - set(_RULES)]
        plain = [match for match in _TOP.finditer(lines[row]) if not set(match["head"]) - set(_RULES)]
        if not tops and (not plain or len(plain[0]["head"]) < 3 or lines[row].strip()[0] not in "┌╭"):
            row += 1
            continue
        here: list[tuple[int, int]] = []
        for match in tops or plain:
            facts, title = _inside(lines, row, match.start(), match.end()), match["head"].strip(_RULES)
            if not title and facts:
                title, facts = facts[0], facts[1:]
            parents = [place for left, place in above if left <= match.start()]
            if (not parents and steps) or len(steps) == _MOST_BOXES:
                return ()
            parent = parents[-1] if parents else None
            depth = 0 if parent is None else steps[parent].depth + 1
            here.append((match.start(), len(steps)))
            steps.append(PlanStep(title=title, facts=tuple(facts), parent=parent, depth=depth))
        above = here
        row += 1
    return tuple(steps)


def _inside(lines: Sequence[str], row: int, left: int, right: int) -> list[str]:
    facts: list[str] = []
    for line in lines[row + 1 :]:
        if len(line) <= left or line[left] in _BOTTOM:
            break
        text = line[left + 1 : right - 1].strip()
        if text and set(text) - set(_RULES):
            facts.append(text)
    return facts


def plan_drawing(steps: Sequence[PlanStep]) -> HtmlText:
    """The steps as SVG: the last one on top, what it reads below."""
    children: dict[int, list[int]] = {place: [] for place in range(len(steps))}
    for place, step in enumerate(steps):
        if step.parent is not None:
            children[step.parent].append(place)
    columns: dict[int, float] = {}
    leaves = 0
    for place in _leaves_first(children):
        if children[place]:
            columns[place] = sum(columns[child] for child in children[place]) / len(children[place])
        else:
            columns[place], leaves = float(leaves), leaves + 1
    heights = [max((_box_height(step) for step in steps if step.depth == depth), default=0) for depth in range(_depths(steps))]
    tops = [_EDGE + sum(heights[:depth]) + depth * _DOWN for depth in range(len(heights))]
    shapes: list[HtmlText] = []
    for place, step in enumerate(steps):
        left, top = _EDGE + columns[place] * (_WIDTH + _ACROSS), tops[step.depth]
        if step.parent is not None:
            above = steps[step.parent]
            start = _EDGE + columns[step.parent] * (_WIDTH + _ACROSS) + _WIDTH / 2, tops[above.depth] + _box_height(above)
            middle = left + _WIDTH / 2
            bend = (start[1] + top) / 2
            path = f"M{middle:.0f} {top}C{middle:.0f} {bend:.0f} {start[0]:.0f} {bend:.0f} {start[0]:.0f} {start[1]}"
            shapes.append(html_element("path", {"class": "edge", "d": path, "fill": "none"}))
        shapes.append(_step(step, left, top))
    width = 2 * _EDGE + max(leaves, 1) * (_WIDTH + _ACROSS) - _ACROSS
    height = (tops[-1] + heights[-1] if tops else 0) + _EDGE
    frame = {"class": "graph plan", "viewBox": f"0 0 {width} {height}", "width": width, "height": height, "role": "img"}
    return html_element("svg", {**frame, "aria-label": f"the plan of the query: {len(steps)} steps"}, *shapes)


def _leaves_first(children: dict[int, list[int]]) -> list[int]:
    """The places of a tree, children before their parent, from left to right."""
    order: list[int] = []
    waiting = [(0, False)] if children else []
    while waiting:
        place, done = waiting.pop()
        if done:
            order.append(place)
            continue
        waiting.append((place, True))
        waiting += [(child, False) for child in reversed(children[place])]
    return order


def _depths(steps: Sequence[PlanStep]) -> int:
    return max((step.depth for step in steps), default=-1) + 1


def _box_height(step: PlanStep) -> int:
    return 2 * _PADDING + _LINE * (1 + min(len(step.facts), _MOST_FACTS))


def _step(step: PlanStep, left: float, top: int) -> HtmlText:
    texts = [html_element("text", {"class": "name", "x": left + 12, "y": top + _PADDING + 11}, _short(step.title))]
    for number, fact in enumerate(step.facts[:_MOST_FACTS]):
        place = {"x": left + 12, "y": top + _PADDING + 11 + (number + 1) * _LINE}
        texts.append(html_element("text", {"class": "fact", **place}, _short(fact)))
    box = {"class": "box", "x": left, "y": top, "width": _WIDTH, "height": _box_height(step), "rx": 8}
    title = html_element("title", None, "\n".join([step.title, *step.facts]))
    kind = "read" if "read" in step.title.lower() or "scan" in step.title.lower() else "step"
    return html_element("g", {"class": f"node {kind}"}, title, html_join([html_element("rect", box), *texts]))


def _short(text: str) -> str:
    return text if len(text) <= _CHARACTERS else f"{text[: _CHARACTERS - 1]}…"
