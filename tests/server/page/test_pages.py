"""Every page of a warehouse with odd names and texts: whole, harmless, usable, and only for who may see it."""

import io
from collections.abc import Iterator
from urllib.parse import quote, urljoin, urlsplit

import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
import pytest

import tablestore as ts
from tablestore.server.access.roles import Grant, Principal, Resource, Role
from tablestore.server.page.pageroutes import PAGE_ROUTES, PageScope, PageService
from tablestore.server.page.rendering import POLICY
from tests.server.page.conftest import ADMIN
from tests.server.page.oddwarehouse import COLUMN, MARKUP
from tests.server.page.pagechecks import facts_of, faults_in
from tests.server.page.pageserver import answer

QUERY = "SELECT item, count(*) AS n FROM Shop.orders GROUP BY item ORDER BY n DESC, item"
ORDERS_READER = Principal(name="bob", grants=(Grant(Role.READER, Resource("Shop", "visits")),))
SECTIONS = ("", "/storage", "/history", "/definition", "/readers")


def page(service: PageService, address: str, principal: Principal = ADMIN, status: int = 200) -> str:
    given = answer(service, principal, address)
    text = given.body.decode()
    assert given.status == status, text
    assert given.headers["Content-Security-Policy"] == POLICY
    return text


def crawled(service: PageService) -> Iterator[tuple[str, str]]:
    """Every page that links lead to from the first one, with its text."""
    waiting, seen = ["/page", f"/page/query?sql={quote(QUERY)}", f"/page/query?show=plan&sql={quote(QUERY)}"], set()
    waiting.append(f"/page/query?show=chart&sql={quote(QUERY)}")
    while waiting:
        address = waiting.pop()
        plain = address.partition("#")[0]
        # Each order of each list is one page too many for a test.
        if plain in seen or ("sort=" in plain and "sort=file_size_bytes" not in plain):
            continue
        seen.add(plain)
        given = answer(service, ADMIN, plain)
        assert given.status in (200, 503), plain
        if "text/html" in given.content_type:
            text = given.body.decode()
            yield plain, text
            facts = facts_of(text)
            waiting += [urljoin(plain, attributes["href"]) for tag, attributes in facts.elements if tag == "a"]
            waiting += [attributes["src"] for tag, attributes in facts.elements if tag in ("img", "script")]


def test_every_page_is_whole_harmless_and_labelled_and_every_link_leads_to_one(service: PageService) -> None:
    pages = dict(crawled(service))
    wrong = {address: faults for address, text in pages.items() if (faults := faults_in(text))}
    assert not wrong
    routes = {route.path.partition("{")[0].rstrip("/") for route in PAGE_ROUTES if route.template and "events" not in route.path}
    assert routes <= {part for address in pages for part in (urlsplit(address).path.removeprefix("/page"), *prefixes(address))}
    for name in ("orders", "visits", "totals", "top"):
        assert {f"/page/tables/Shop/{name}{section}" for section in SECTIONS} <= set(pages)
    assert {f"/page/tables/Shop/orders%24branch_try.1{section}" for section in SECTIONS} <= set(pages)
    assert not any("<script>alert" in text for text in pages.values())
    shown = [text for address, text in pages.items() if "Odd_Name" in address and not address.endswith("readers")]
    assert shown and all(MARKUP in "".join(facts_of(text).texts) for text in shown)
    assert any(COLUMN in facts_of(text).texts for text in shown)


def prefixes(address: str) -> list[str]:
    parts = urlsplit(address).path.removeprefix("/page").strip("/").split("/")
    return ["/" + "/".join(parts[:count]) for count in range(len(parts) + 1)]


def test_a_page_shows_only_what_its_caller_sees(service: PageService) -> None:
    home = page(service, "/page", ORDERS_READER)
    assert "Shop.visits" in home and "Shop.orders" not in home and "odd-1" not in home and "cheap" not in home
    assert page(service, "/page/tables/Shop/visits", ORDERS_READER)
    for path in (
        "tables/Shop/orders",
        "tables/Shop/orders/history/1",
        "tables/odd-1/nothing",
        "materialized/Shop/totals",
        "views/Shop/cheap",
        "tables/Shop/nothing-there",
        "tables/..%2f/x",
        "tables/Shop/orders%24files",
    ):
        text = page(service, f"/page/{path}", ORDERS_READER, 404)
        assert "item" not in text and not faults_in(text)
    for path in ("graph", "jobs", "jobs/events"):
        text = answer(service, ORDERS_READER, f"/page/{path}").body.decode()
        assert not any(name in text for name in ("orders", "totals", "cheap", "alert"))


def test_a_source_that_the_caller_does_not_see_has_no_name_in_the_graph(service: PageService) -> None:
    grants = (Grant(Role.READER, Resource("Shop", "totals")),)
    text = page(service, "/page/graph", Principal(name="eve", grants=grants))
    assert "Shop.totals" in text and "a table that you do not see" in text and "orders" not in text


def test_who_has_no_role_at_all_sees_no_name(service: PageService) -> None:
    nobody = Principal(name="nobody", grants=())
    for route in PAGE_ROUTES:
        if route.path.startswith("/static"):
            continue
        path = (
            route.path.format(database="Shop", table="orders", view="cheap", snapshot="1")
            if route.scope is PageScope.OBJECT
            else route.path
        )
        given = answer(service, nobody, f"/page{path}")
        assert given.status in (200, 403, 404)
        assert not any(word in given.body.decode() for word in ("every order", "item", "totals", "odd-1"))


def test_a_table_that_cannot_be_read_says_why_and_hides_no_other(service: PageService) -> None:
    for name in ("broken", "damaged"):
        text = page(service, f"/page/tables/odd-1/{name}", status=503)
        assert "It cannot be read" in text and not faults_in(text)
    home = "".join(facts_of(page(service, "/page")).texts)
    assert "tablestore verify odd-1.broken" in home and "its refreshes are suspended" in home and "Shop.visits" in home


def test_the_search_finds_tables_by_a_part_of_their_name(service: PageService) -> None:
    text = page(service, "/page?search=ORD&database=Shop")
    assert "Shop.orders" in text and "Shop.visits" not in text
    assert "No table has such a name" in page(service, "/page?search=%3Cb%3E")
    page(service, "/page?page=7", status=404)
    for wrong in ("page=0", "page=x", "page=-1", "page=1e3", "page=99999999999999999999"):
        page(service, f"/page?{wrong}", status=400)


def test_a_commit_says_which_rows_came_went_and_changed(service: PageService) -> None:
    texts = facts_of(page(service, "/page/tables/Shop/orders/history")).texts
    assert {"+20", "+10", "~10", "\N{MINUS SIGN}5"} <= set(texts)
    assert "tag end-of-january" in texts and "branch try.1 begins" in texts
    changed = facts_of(page(service, "/page/tables/Shop/orders/history/2")).texts
    assert {"+I", "-U", "+U"} <= set(changed)
    assert "changed no row" in page(service, "/page/tables/Shop/orders/history/8")
    for number in ("0", "999", "x", "9" * 30):
        page(service, f"/page/tables/Shop/orders/history/{number}", status=404)


def test_lists_of_files_are_sorted_as_the_query_says(service: PageService) -> None:
    def sizes(order: str) -> list[str]:
        facts = facts_of(page(service, f"/page/tables/Shop/visits/storage?sort=row_count&order={order}"))
        return [attributes["title"] for tag, attributes in facts.elements if tag == "code" and "title" in attributes]

    assert len(sizes("ascending")) == 7 and sizes("ascending")[0] != sizes("descending")[0]
    page(service, "/page/tables/Shop/visits/storage?sort=rows%3B", status=400)


def test_the_definition_has_a_statement_that_makes_the_same_table(service: PageService, tmp_path: object) -> None:
    texts = facts_of(page(service, "/page/tables/odd-1/Odd_Name/definition")).texts
    statement = next(text for text in texts if text.startswith("CREATE TABLE"))
    with ts.TableEnvironment.create(str(tmp_path)) as environment:
        environment.catalog().create_database("odd-1")
        environment.execute_sql(statement)
        assert COLUMN in environment.catalog().table("odd-1.Odd_Name").schema.names


def test_the_page_of_a_materialized_table_says_how_it_is_refreshed_and_why(service: PageService) -> None:
    totals = "".join(facts_of(page(service, "/page/materialized/Shop/totals")).texts)
    assert "from changes" in totals and "it is the first refresh" in totals and "Shop.top" in totals and "Shop.orders" in totals
    assert "All rows are computed, because" in page(service, "/page/materialized/Shop/top")
    page(service, "/page/materialized/Shop/orders", status=400)


def test_jobs_are_an_event_of_one_part_of_the_page(service: PageService) -> None:
    given = answer(service, ADMIN, "/page/jobs/events")
    lines = given.body.decode().splitlines()
    assert given.content_type.startswith("text/event-stream") and lines[0] == "event: jobs" and given.body.endswith(b"\n\n")
    assert all(line.startswith("data: ") for line in lines[2:-1]) and "<script>alert" not in given.body.decode()


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
def test_a_result_is_a_file_of_all_its_rows(service: PageService, kind: str) -> None:
    given = answer(service, ADMIN, f"/page/query/result?format={kind}&sql={quote(QUERY)}")
    assert given.status == 200 and given.headers["Content-Disposition"] == f'attachment; filename="result.{kind}"'
    source = io.BytesIO(given.body)
    match kind:
        case "csv":
            rows = pyarrow.csv.read_csv(source)
        case "parquet":
            rows = pyarrow.parquet.read_table(source)
        case _:
            rows = pyarrow.ipc.open_stream(source).read_all()
    assert rows.column_names == ["item", "n"] and MARKUP in rows["item"].to_pylist()


@pytest.mark.parametrize(
    "text",
    [
        "DROP TABLE Shop.orders",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "INSERT INTO Shop.visits VALUES (1)",
        "SELECT nothing",
        "SELECT <b>",
        "SELECT 1; SELECT 2",
        "x" * 9_000,
    ],
)
def test_a_query_only_reads_tables_and_what_fails_says_why(service: PageService, text: str) -> None:
    shown = page(service, f"/page/query?sql={quote(text)}")
    assert 'role="alert"' in shown and not faults_in(shown)
    assert answer(service, ADMIN, f"/page/query/result?sql={quote(text)}").status in (400, 404)


def test_a_query_reads_only_what_its_caller_may(service: PageService) -> None:
    for text in ("SELECT * FROM Shop.orders", "SELECT * FROM Shop.cheap", "SELECT * FROM Shop.`orders$files`"):
        shown = page(service, f"/page/query?sql={quote(text)}", ORDERS_READER)
        assert 'role="alert"' in shown and "item 1" not in shown
    assert 'role="alert"' not in page(service, f"/page/query?sql={quote('SELECT * FROM Shop.visits')}", ORDERS_READER)
    listed = page(service, f"/page/query?sql={quote('SELECT table_name FROM information_schema.tables')}", ORDERS_READER)
    assert "visits" in listed and "totals" not in listed


def test_queries_are_off_unless_the_service_has_a_runner_and_the_caller_the_role(service: PageService, catalog: ts.Catalog) -> None:
    without = PageService(catalog=catalog)
    assert "Not for you" in page(without, "/page/query", status=403)
    assert "/page/query" not in page(without, "/page")
    writers = PageService(catalog=catalog, runner=service.runner, query_role=Role.WRITER)
    assert answer(writers, ORDERS_READER, "/page/query?sql=SELECT+1").status == 403
    assert answer(writers, ORDERS_READER, "/page/query/result?sql=SELECT+1").status == 403


def test_a_chart_needs_a_column_of_numbers(service: PageService) -> None:
    assert "a chart needs a column of numbers" in page(service, "/page/query?show=chart&sql=SELECT+%27a%27+AS+b")
    values = quote("SELECT * FROM VALUES (-1.5D, 'a'), (double('NaN'), 'b'), (NULL, 'c'), (2.5D, NULL) AS t(n, name)")
    text = page(service, f"/page/query?show=chart&sql={values}")
    assert "<svg" in text and not faults_in(text)
