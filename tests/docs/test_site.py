"""The documents build: no link is broken, and the generated pages hold all that they are made from."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pages
import pytest

import tablestore as ts
from tablestore.catalog import settings
from tablestore.environment.rows.dynamicoptions import DYNAMIC_OPTIONS
from tablestore.io.lock import lockoptions
from tablestore.options import TABLE_OPTIONS
from tests.support.browsing import open_browser


@pytest.fixture(scope="module")
def generate(project: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", project / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documents") / "site"
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=project,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.deep
@pytest.mark.xdist_group("site")
def test_site_builds_strictly(site: Path) -> None:
    for page in ("reference/api", "reference/options", "reference/errors", "guides/kafka"):
        assert (site / f"{page}.html").is_file()
    assert 'id="tablestore.Table.scan"' in (site / "reference" / "api.html").read_text()


@pytest.mark.deep
@pytest.mark.xdist_group("site")
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # the loop that Playwright's driver leaves to the collector
def test_the_site_is_read_without_a_network_and_its_first_page_without_scrolling_sideways(site: Path) -> None:
    with open_browser(os.environ) as browser:
        for theme in ("light", "dark"):
            context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme=theme)
            page, foreign = context.new_page(), []
            page.on("request", lambda request, foreign=foreign: foreign.append(request.url))
            for name in ("index", "explanation/table", "explanation/format", "explanation/commit", "explanation/change-log"):
                page.goto((site / f"{name}.html").as_uri())
                drawing = page.locator(".diagram svg[role=img]").first
                drawing.wait_for(state="visible")
                assert drawing.bounding_box()["width"] > 200 and page.locator(".mermaid").count() == 0
            page.goto((site / "index.html").as_uri())
            code = page.locator("pre code").first
            assert code.evaluate("element => element.scrollWidth <= element.clientWidth")
            assert page.locator(".md-logo img").first.evaluate("element => element.naturalWidth > 0")
            assert page.locator("link[rel=icon]").get_attribute("href").endswith("mark.svg")
            assert [url for url in foreign if not url.startswith(("file:", "data:", "blob:"))] == []
            context.close()


def test_every_public_name_is_on_the_page_of_the_api(generate: ModuleType) -> None:
    shown = {name for names in generate.API.values() for name in names if isinstance(name, str)}
    assert shown == set(ts.__all__) - {"__version__"}


def test_every_option_system_table_and_command_is_on_its_page(generate: ModuleType) -> None:
    known = {*TABLE_OPTIONS, *DYNAMIC_OPTIONS, *lockoptions.OPTIONS, *settings.OPTIONS}
    assert set(re.findall(r"^\| `([\w.-]+)` \|", generate.options_page(), re.MULTILINE)) == known
    assert set(re.findall(r"^## (\w+)$", generate.system_tables_page(), re.MULTILINE)) == set(generate.SYSTEM_TABLES)
    commands = {" ".join(path) for path, _ in generate.commands()}
    assert set(re.findall(r"^## (.+)$", generate.command_line_page(), re.MULTILINE)) == commands


def test_every_default_is_shown_as_a_value_of_its_option(generate: ModuleType) -> None:
    for option in [*TABLE_OPTIONS.values(), *lockoptions.OPTIONS.values()]:
        text = generate.shown_default(option)
        assert not text or option.parse(text) == option.default
        assert option.sentence.endswith(".")


@pytest.mark.deep
def test_messages_are_found_with_their_kinds(generate: ModuleType) -> None:
    found = generate.messages()
    assert set(found) >= {"ConflictError", "NotFoundError", "InvalidInputError", "FormatError", "UnsupportedError"}
    assert any("unknown table option" in message for message in found["InvalidInputError"]["unknown-option"])


def test_readme_is_short(project: Path) -> None:
    assert len((project / "README.md").read_text().splitlines()) <= 200


@pytest.mark.parametrize("page", [*pages.documents(), *pages.OTHERS], ids=pages.name_of)
def test_documents_name_only_files_that_exist(project: Path, page: Path) -> None:
    text = page.read_text()
    links = [page.parent / name for name in re.findall(r"\]\((?!https?://|#)([^)#]+)", text) if "reference/" not in name]
    named = re.findall(r"`((?:tablestore|tests|connectors|benchmarks|docs|\.ci)/[\w./-]*)`", text)
    missing = [str(path) for path in (*links, *map(project.joinpath, named)) if not path.exists()]
    assert not missing


def test_every_document_is_in_the_navigation(project: Path) -> None:
    navigation = (project / "mkdocs.yml").read_text()
    for page in pages.documents()[1:]:
        assert f" {page.relative_to(project / 'docs')}\n" in navigation
