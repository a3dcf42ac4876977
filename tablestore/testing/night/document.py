"""``python -m tablestore.testing.night.document NIGHT.json PAGE.md``: write a night's results into a page, between its marks."""

import json
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

BEGIN, END = "<!-- night: begin -->", "<!-- night: end -->"


def rendered(night: Mapping[str, Any]) -> str:
    """The results as Markdown."""
    lines = [
        f"{_length(night['seconds'])} (Python {night['python']}, {night['began'][:10]}, seed "
        f"{night['seed']}): {night['lives']:,} lives, {night['faults']:,} faults, {night['kills']:,} kills, "
        f"{night['states']:,} states checked, {len(night['findings'])} findings; {night['faults_per_cpu_second']:,} faults and "
        f"{night['kills_per_cpu_second']:,} kills for each second of the processor.",
        "",
        "| scenario | lives | faults | kills | states checked |",
        "|---|---:|---:|---:|---:|",
    ]
    verbs: Counter[str] = Counter()
    for name, tally in night["scenarios"].items():
        numbers = (tally["lives"], tally["faults_total"], tally["kills_total"], tally["states"])
        lines.append(f"| {name} | {' | '.join(f'{number:,}' for number in numbers)} |")
        for where, count in tally["faults"].items():
            verbs[where.partition(" ")[0]] += count
    told = ", ".join(f"{verb} {count:,}" for verb, count in verbs.most_common(12))
    return "\n".join([*lines, "", f"Faults by verb: {told}."])


def _length(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.0f} min"


def written_into(page: str, text: str) -> str:
    """The page with ``text`` between its marks."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    target.write_text(written_into(target.read_text(), rendered(json.loads(source.read_text()))))
