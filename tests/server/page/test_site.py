"""The pages of a warehouse as files: each link leads to one of them, and names of any kind become names of files."""

import json
from pathlib import Path
from urllib.parse import unquote

import pytest

import tablestore as ts
from tablestore.cli.warehousecheck import check_is_warehouse
from tablestore.server.page.pagelinks import file_slug, table_page
from tablestore.server.page.siteexport import SiteReport, write_site
from tests.server.page.pagechecks import facts_of, faults_in
from tests.support.commandline import run_command


@pytest.fixture(scope="module")
def site(catalog, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, SiteReport]:
    folder = tmp_path_factory.mktemp("site")
    return folder, write_site(catalog, folder)


def test_every_link_of_a_site_leads_to_a_file_of_it_and_every_page_is_whole(site: tuple[Path, SiteReport]) -> None:
    folder, report = site
    pages = sorted(folder.rglob("*.html"))
    assert len(pages) == report.pages and report.left_out == 0
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert not faults_in(text), page
        for tag, attributes in facts_of(text).elements:
            link = attributes.get("href") or attributes.get("src")
            if link and not link.startswith("#"):
                target = (page.parent / unquote(link).partition("#")[0]).resolve()
                assert target.is_file() and target.is_relative_to(folder.resolve()), f"{page}: <{tag}> leads to {link}"


def test_every_page_of_a_site_is_reached_from_the_first_one(site: tuple[Path, SiteReport]) -> None:
    folder, report = site
    waiting, reached = [folder / "index.html"], set()
    while waiting:
        page = waiting.pop().resolve()
        if page not in reached:
            reached.add(page)
            links = [attributes["href"] for tag, attributes in facts_of(page.read_text()).elements if tag == "a"]
            waiting += [page.parent / link for link in links if not link.startswith("#")]
    assert len(reached) == report.pages


def test_a_site_needs_no_server(site: tuple[Path, SiteReport]) -> None:
    for page in site[0].rglob("*.html"):
        tags = [tag for tag, attributes in facts_of(page.read_text()).elements if attributes.get("name") != "theme"]
        assert "form" not in tags and "textarea" not in tags and "ago</time>" not in page.read_text()


def test_tables_that_cannot_be_read_have_a_page_that_says_why(site: tuple[Path, SiteReport]) -> None:
    folder, report = site
    assert table_page("odd-1", "broken") in report.unreadable and table_page("odd-1", "damaged", "history") in report.unreadable
    assert "It cannot be read" in (folder / table_page("odd-1", "broken")).read_text()


def test_names_that_differ_in_their_case_alone_are_files_that_differ_everywhere() -> None:
    names = ["orders", "Orders", "ORDERS", "orders$branch_a", "a" * 128, "a" * 127 + "b", "ä", "..", "-"]
    slugs = {file_slug(name) for name in names}
    assert len({slug.lower() for slug in slugs}) == len(names)
    assert all("/" not in slug and not slug.startswith(".") for slug in slugs)


def test_the_command_writes_a_site_and_says_where(warehouse: Path, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "site"
    ran = run_command("page", warehouse, "-o", folder, "--json")
    assert ran.json["folder"] == str(folder) and ran.json["pages"] == len(list(folder.rglob("*.html")))
    assert (folder / "index.html").is_file() and (folder / "static" / "page.css").is_file()


def test_a_folder_that_cannot_be_written_is_an_error_with_its_name(warehouse: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert str(tmp_path / "file") in run_command("page", warehouse, "-o", tmp_path / "file", code=1).err


def test_a_folder_that_is_no_warehouse_is_an_error_that_names_what_lies_there_and_nothing_is_written(
    warehouse: Path, tmp_path: Path
) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "sea.jpg").write_text("")
    makes = "tablestore db create NAME --warehouse"
    for place, found, way_out in (
        (tmp_path / "nowhere", "found nothing", makes),
        (tmp_path / "photos", "found no database, only sea.jpg", makes),
        (warehouse / "Shop.db", "found a database", f"name the folder that it lies in, {warehouse}"),
        (warehouse / "Shop.db" / "orders", "found a table", f"name the folder that its database lies in, {warehouse}"),
    ):
        ran = run_command("page", place, "-o", tmp_path / "site", code=1)
        assert "expected a warehouse" in ran.err and found in ran.err and way_out in ran.err
        assert json.loads(run_command("page", place, "--json", code=1).err)["error"]["kind"] == "no-warehouse"
        assert not (tmp_path / "site").exists() and not (tmp_path / "nowhere").exists()


def test_a_service_of_what_is_no_warehouse_is_an_error_and_of_nothing_yet_is_none(warehouse: Path, tmp_path: Path) -> None:
    ran = run_command("serve", warehouse / "Shop.db", code=1)
    assert "found a database" in ran.err and str(warehouse) in ran.err
    catalog = ts.open_catalog(tmp_path / "new")
    check_is_warehouse(catalog, may_be_empty=True)
    with pytest.raises(ts.NotFoundError, match="found nothing"):
        check_is_warehouse(catalog, may_be_empty=False)
