"""The pages in a real browser: at two widths and in both themes without an error, a foreign request, or what axe finds wrong."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from tablestore.server.page.pageroutes import PageService
from tests.server.page.conftest import ADMIN
from tests.server.page.pageserver import serving
from tests.support.browsing import open_browser

pytestmark = [
    pytest.mark.deep,
    # The loop that Playwright's driver leaves to the collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

AXE = Path(__file__).parent / "axe" / "axe.min.js"
RULES = "{runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']}"
SQL = quote(
    "SELECT o.item, count(*) AS n, sum(t.total) AS total FROM Shop.orders o JOIN Shop.totals t ON o.item = t.item GROUP BY o.item"
)
PAGES = {
    "warehouse": "",
    "search": "?search=o&database=Shop",
    "table": "/tables/Shop/orders",
    "odd": "/tables/odd-1/Odd_Name",
    "empty": "/tables/odd-1/nothing_keyed",
    "storage": "/tables/Shop/orders/storage",
    "partitions": "/tables/Shop/visits/storage?sort=file_size_bytes&order=descending",
    "history": "/tables/Shop/orders/history",
    "changes": "/tables/Shop/orders/history/3",
    "branch": "/tables/Shop/orders%24branch_try.1",
    "definition": "/tables/Shop/orders/definition",
    "readers": "/tables/Shop/visits/readers",
    "graph": "/graph",
    "materialized": "/materialized/Shop/totals",
    "view": "/views/Shop/cheap",
    "jobs": "/jobs",
    "query": "/query",
    "result": f"/query?sql={SQL}",
    "chart": f"/query?show=chart&sql={SQL}",
    "plan": f"/query?show=plan&sql={SQL}",
    "query-error": "/query?sql=DROP+TABLE+x",
}


@pytest.fixture(scope="module")
def address(service: PageService) -> Iterator[str]:
    with serving(service, ADMIN) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_browser(os.environ) as browser:
        yield browser


class Watched:
    """A page of a browser, and all that went wrong in it."""

    def __init__(self, browser: Any, *, width: int = 1200, theme: str = "light", **options: Any) -> None:
        self.context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=theme, **options)
        self.page = self.context.new_page()
        self.faults: list[str] = []
        self.hosts: set[str] = set()
        self.page.on("console", lambda message: self.faults.append(message.text))
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("request", lambda request: self.hosts.add(urlsplit(request.url).netloc))

    def __enter__(self) -> "Watched":
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()


@pytest.mark.parametrize(("width", "theme"), [(1200, "light"), (390, "dark"), (1200, "dark"), (390, "light")])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_no_error_no_foreign_request_and_nothing_that_axe_finds(
    browser: Any, address: str, name: str, width: int, theme: str
) -> None:
    with Watched(browser, width=width, theme=theme) as watched:
        watched.page.goto(f"{address}/page{PAGES[name]}")
        watched.page.evaluate(AXE.read_text(encoding="utf-8"))
        result = watched.page.evaluate(f"axe.run({RULES})")
        assert [(fault["id"], [node["html"] for node in fault["nodes"]]) for fault in result["violations"]] == []
        assert watched.faults == [] and watched.hosts == {urlsplit(address).netloc}
        assert watched.page.evaluate("document.documentElement.scrollWidth") <= width


def test_pages_work_without_javascript(browser: Any, address: str) -> None:
    with Watched(browser, java_script_enabled=False) as watched:
        page = watched.page
        page.goto(f"{address}/page")
        page.get_by_label("Name", exact=True).fill("visi")
        page.get_by_role("button", name="Search").click()
        page.get_by_role("link", name="Shop.visits").first.click()
        page.get_by_role("link", name="Storage").click()
        page.get_by_role("link", name="size").last.click()
        assert "sort=file_size_bytes" in page.url
        page.get_by_role("link", name="History").click()
        page.get_by_role("link", name="4", exact=True).click()
        assert page.get_by_role("heading", name="What snapshot 4 changed").is_visible()
        page.get_by_role("link", name="Query").click()
        page.get_by_label("SQL").fill("SELECT page, count(*) AS n FROM Shop.visits GROUP BY page")
        page.get_by_role("button", name="Chart").click()
        assert page.get_by_role("img", name="n by page").is_visible()
        page.get_by_role("button", name="Explain").click()
        assert page.get_by_role("img", name="the plan of the query").is_visible()
        page.get_by_role("link", name="Graph").click()
        page.get_by_role("link", name="Shop.totals").first.click()
        assert page.get_by_role("heading", name="Refreshes").is_visible()
        assert watched.faults == []


def test_the_switch_of_colours_needs_no_javascript_and_is_remembered_with_it(browser: Any, address: str) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    with Watched(browser, java_script_enabled=False) as watched:
        watched.page.goto(f"{address}/page")
        before = watched.page.evaluate(colour)
        watched.page.get_by_label("Dark").check()
        assert watched.page.evaluate(colour) != before
    with Watched(browser) as watched:
        watched.page.goto(f"{address}/page")
        watched.page.get_by_label("Dark").check()
        watched.page.goto(f"{address}/page/graph")
        assert watched.page.evaluate(colour) != before and watched.page.get_by_label("Dark").is_checked()


def test_a_page_is_used_with_the_keyboard_alone(browser: Any, address: str) -> None:
    with Watched(browser) as watched:
        page = watched.page
        page.goto(f"{address}/page")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        assert page.evaluate("document.querySelector('main').contains(document.activeElement)")


def test_jobs_are_shown_as_they_change(browser: Any, address: str) -> None:
    with Watched(browser) as watched:
        watched.page.goto(f"{address}/page/jobs")
        watched.page.get_by_text("It is up to date by itself.").wait_for(timeout=10_000)
        assert watched.page.get_by_role("link", name="Shop.totals").first.is_visible()


def test_a_name_that_was_looked_up_comes_into_the_query(browser: Any, address: str) -> None:
    with Watched(browser) as watched:
        page = watched.page
        page.goto(f"{address}/page/query")
        page.get_by_label("SQL").fill("SELECT * FROM ")
        page.get_by_label("Look up a name").fill("Shop.visits")
        page.get_by_label("Look up a name").press("Enter")
        assert page.get_by_label("SQL").input_value() == "SELECT * FROM Shop.visits"
        with page.expect_navigation():
            page.get_by_role("button", name="Run").click()
        with page.expect_download() as download:
            page.get_by_role("link", name="CSV").click()
        assert Path(download.value.path()).read_text().startswith('"day","page","seconds"')
