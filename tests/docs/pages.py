"""The documents as programs: which blocks a page has, and running them in their order.

A page is one program in one empty folder. Its ``python`` blocks share a namespace, its ``bash`` blocks the environment, and its
``sql`` blocks are given to the ``spark`` that the Python blocks made. A comment in front of a block says what it needs:

    <!-- test: slow -->          runs with the slow tests only
    <!-- test: spark -->         needs Spark
    <!-- test: kafka -->         needs a broker; localhost:9092 stands for it
    <!-- test: s3 -->            needs a server with the bucket lake; http://localhost:9000 stands for it
    <!-- test: deltalake -->     needs another system's package, as do `pyiceberg`, `ray` and `daft`

A ``json`` block is what the ``bash`` block before it prints. ``console`` blocks (installing, services that run for ever) and
``text`` are shown and not run.

    python tests/docs/pages.py PAGE [--with NEED]… [--at DOCUMENTED=REAL]     runs a page here
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent.parent
OTHERS = [PROJECT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md")]
RUN = ("python", "bash", "sql", "json")
SHOWN = ("console", "text", "toml", "mermaid")
PACKAGES = ("deltalake", "pyiceberg", "ray", "daft")
NEEDS = ("slow", "spark", "kafka", "s3", *PACKAGES)
BROKER, S3 = "localhost:9092", "http://localhost:9000"

_FENCE = re.compile(r"^(?:<!-- test: (?P<need>[a-z0-9]+) -->\n)?```(?P<language>\S*)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One code block; ``line`` is where its first line stands in the page."""

    language: str
    code: str
    line: int
    need: str | None


def documents() -> list[Path]:
    """Every page that a person has written."""
    return [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]


def name_of(page: Path) -> str:
    return str(page.relative_to(PROJECT))


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    return [
        Block(
            language=found["language"],
            code=found["code"],
            line=text.count("\n", 0, found.start("code")) + 1,
            need=found["need"],
        )
        for found in _FENCE.finditer(text)
    ]


def pages_with(need: str | None) -> list[Path]:
    """The pages that have a block to run which needs just this."""
    return [page for page in documents() if any(block.need == need and block.language in RUN for block in blocks(page))]


def run_page(page: Path, needs: Collection[str] = (), *, services: Mapping[str, str] | None = None) -> None:
    """Run the blocks that need nothing, or one of ``needs``, here. A block that fails raises, and its line is that of the page.

    ``services``: where those are that a documented address stands for.
    """
    namespace: dict[str, object] = {"__name__": page.stem}
    with tempfile.TemporaryDirectory() as aside:
        environment, printed = Path(aside, "environment"), ""
        environment.touch()
        for block in blocks(page):
            if block.need is not None and block.need not in needs:
                continue
            code = block.code
            for documented, real in (services or {}).items():
                code = code.replace(documented, real)
            match block.language:
                case "python":
                    exec(compile("\n" * (block.line - 1) + code, str(page), "exec"), namespace)
                case "sql":
                    for statement in filter(str.strip, code.split(";")):
                        namespace["spark"].sql(statement)  # type: ignore[attr-defined]
                case "bash":
                    printed = _run_bash(code, environment, f"{page}:{block.line}")
                case "json":
                    assert code in printed, f"{page}:{block.line} promises\n{code}and this was printed\n{printed}"


def _run_bash(code: str, environment: Path, where: str) -> str:
    start = f'tablestore() {{ "{sys.executable}" -W error -m tablestore "$@"; }}\nset -eo pipefail\nsource "{environment}"'
    done = subprocess.run(
        ["bash", "-c", f'{start}\n{code}\nexport -p > "{environment}"'], capture_output=True, text=True, check=False, env=os.environ
    )
    assert done.returncode == 0, f"{where} ends with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Run the code blocks of a page in the current folder.")
    parser.add_argument("page", type=Path)
    parser.add_argument("--with", action="append", choices=NEEDS, default=[], dest="needs")
    parser.add_argument("--at", action="append", default=[], dest="services")
    given = parser.parse_args()
    run_page(given.page.resolve(), given.needs, services=dict(pair.split("=", 1) for pair in given.services))
