"""Subscriptions in the console: found, made, changed, removed, imported."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

import xsift
from tests.console.conftest import go, write
from tests.service.running import RunningServer, until


def search(page: Page, text: str) -> None:
    page.get_by_label("Search").fill(text)
    page.wait_for_timeout(300)


def test_one_is_made_from_try_changed_and_removed(page: Page, client: xsift.Client) -> None:
    write(page, "//dateline[location = 'Lima']")
    page.get_by_role("button", name="Subscribe with this").click()
    box = page.get_by_role("dialog")
    box.get_by_label("Id").fill("from-lima")
    box.get_by_label("Labels").fill("team=south\nkind=place")
    box.get_by_label("Metadata").fill('{"priority": 2}')
    box.get_by_label("What is delivered").select_option("fragments")
    box.get_by_role("button", name="Subscribe", exact=True).click()
    expect(page.locator("#said")).to_contain_text("Subscribed: from-lima")
    made = client.get("from-lima")
    assert made["xpath"] == "//dateline[location = 'Lima']"
    assert made["labels"] == {"team": "south", "kind": "place"}
    assert (made["metadata"], made["deliver"]) == ({"priority": 2}, "fragments")

    go(page, "Subscriptions")
    search(page, "from-lima")
    page.get_by_role("button", name="from-lima").click()
    box.get_by_role("textbox", name="Expression").fill("//dateline[location = 'Quito']")
    expect(box).to_contain_text("Valid; the index decides it alone")
    box.get_by_role("button", name="Save").click()
    expect(page.locator(".table")).to_contain_text("Quito")

    page.get_by_role("button", name="from-lima").click()
    box.get_by_role("button", name="History").click()
    states = box.locator(".history li")
    expect(states).to_have_count(2)
    expect(states.nth(0)).to_contain_text("now")
    states.nth(1).get_by_role("button", name="Put into the form").click()
    box.get_by_role("button", name="Save").click()
    expect(page.locator(".table")).to_contain_text("Lima")
    assert client.get("from-lima")["xpath"] == "//dateline[location = 'Lima']"

    page.get_by_role("button", name="from-lima").click()
    box.get_by_role("button", name="Remove").click()
    page.get_by_role("button", name="Leave it").click()
    assert "from-lima" in client
    box.get_by_role("button", name="Remove").click()
    page.get_by_role("button", name="Remove it").click()
    expect(page.locator(".table")).to_contain_text("Nothing is like that")
    assert "from-lima" not in client


def test_what_is_said_of_an_expression_is_of_the_one_that_stands_there(page: Page) -> None:
    go(page, "Subscriptions")
    page.get_by_role("button", name="New …").click()
    dialog = page.get_by_role("dialog")
    held: list[Route] = []
    page.route("**/subscriptions/validate", lambda route: held.append(route))
    for number, xpath in enumerate(("//p[", "//p"), 1):
        dialog.get_by_role("textbox", name="Expression").fill(xpath)
        until(lambda number=number: page.evaluate("1") and len(held) == number)
    for route in reversed(held):
        with page.expect_response("**/subscriptions/validate"):
            route.continue_()
    page.evaluate("new Promise((resolve) => setTimeout(resolve, 300))")
    expect(dialog.get_by_role("textbox", name="Expression")).to_have_attribute("aria-invalid", "false")


def test_one_is_tried_from_the_list(page: Page, client: xsift.Client) -> None:
    client.add("to-try", "//cbc:ID", namespaces={"cbc": "urn:x"})
    go(page, "Subscriptions")
    search(page, "to-try")
    page.get_by_role("button", name="to-try").click()
    page.get_by_role("dialog").get_by_role("button", name="Try").click()
    expect(page.get_by_role("textbox", name="Expression")).to_have_value("//cbc:ID")
    expect(page.locator(".chips li")).to_contain_text("urn:x")


@pytest.mark.parametrize(
    ("field", "text", "told"),
    [
        ("Id", "a/b", "no / in it"),
        ("Labels", "nonsense", "A label is written name=value"),
        ("Metadata", "{", "The metadata is not JSON"),
        ("Metadata", "[1]", "The metadata is a JSON object"),
        ("Expression", "//a[", "predicate is not closed"),
        ("Expression", "", "There is no expression yet"),
        ("Subscriber", "x/y", "no /"),
    ],
)
def test_wrong_input_is_said_and_nothing_is_made(
    page: Page, client: xsift.Client, field: str, text: str, told: str
) -> None:
    go(page, "Subscriptions")
    page.get_by_role("button", name="New").click()
    box = page.get_by_role("dialog")
    box.get_by_label("Id").fill("wrong")
    box.get_by_role("textbox", name="Expression").fill("//fine")
    box.get_by_label(field).fill(text)
    box.get_by_role("button", name="Subscribe", exact=True).click()
    expect(box.locator("form > .bad")).to_contain_text(told)
    assert "wrong" not in client


def test_ten_thousand_are_searched_sorted_and_filtered(page: Page, server: RunningServer) -> None:
    rows = [
        {"id": f"many-{number:05}", "xpath": f"//thing[@n = '{number}']", "labels": {"last": str(number % 10)}}
        for number in range(10_000)
    ]
    with server.client(owner="crowd") as crowd:
        assert not crowd.add_many(rows)
        for number in (77, 77, 9_000):
            crowd.publish(f"<r><thing n='{number}'/></r>")
        go(page, "Subscriptions")
        page.get_by_label("Owner").select_option("crowd")
        expect(page.locator(".total")).to_have_text("1–50 of 10,000 subscriptions")
        assert page.locator(".table tbody tr").count() == 50
        page.get_by_role("button", name="Next").click()
        expect(page.locator(".total")).to_have_text("51–100 of 10,000 subscriptions")
        expect(page.locator(".table tbody tr").first).to_contain_text("many-00050")
        page.get_by_role("button", name="Previous").click()
        expect(page.locator(".table tbody tr").first).to_contain_text("many-00000")

        page.get_by_label("Sort").select_option("matches")
        expect(page.locator(".table tbody tr").nth(0)).to_contain_text("many-00077")
        expect(page.locator(".table tbody tr").nth(1)).to_contain_text("many-09000")
        expect(page.locator(".table tbody tr").nth(2)).to_contain_text("many-00000")
        page.get_by_label("Sort").select_option("changed")
        expect(page.locator(".table tbody tr").first).to_contain_text("many-09999")
        page.get_by_role("button", name="Next").click()
        expect(page.locator(".table tbody tr").first).to_contain_text("many-09949")

        page.get_by_label("Sort").select_option("id")
        page.get_by_label("Label", exact=True).fill("last=3")
        expect(page.locator(".total")).to_have_text("1–50 of 1,000 subscriptions")
        search(page, "0123")
        expect(page.locator(".total")).to_have_text("1–2 of 2 subscriptions")
        page.get_by_label("Label", exact=True).fill("")
        page.locator(".chip", has_text="last=3").first.click()
        expect(page.get_by_label("Label", exact=True)).to_have_value("last=3")
        search(page, "no such thing")
        expect(page.locator(".table")).to_contain_text("Nothing is like that")


def test_one_that_fails_says_why(page: Page, server: RunningServer) -> None:
    with server.client(owner="costly") as costly:
        costly.add("cubic", "//a[. = //a/following::a/@b]")
        costly.publish("<r>" + "<a b='1'/>" * 20_000 + "</r>")
    go(page, "Subscriptions")
    page.get_by_label("Sort").select_option("failures")
    row = page.locator(".table tbody tr").first
    expect(row).to_contain_text("cubic")
    expect(row.locator(".bad")).to_have_text("1")
    row.get_by_role("button", name="cubic").click()
    expect(page.get_by_role("dialog").locator(".warning")).to_contain_text("steps")


def test_many_are_imported_and_what_is_refused_is_reported(page: Page, client: xsift.Client, tmp_path: Path) -> None:
    lines = [
        {"id": "imported-1", "xpath": "//one"},
        {"id": "imported-2", "xpath": "//two["},
        {"id": "imported-3"},
        {"id": "imported-4", "xpath": "//four", "labels": {"from": "file"}},
    ]
    file = tmp_path / "many.ndjson"
    file.write_text("\n".join(map(json.dumps, lines)) + "\nnonsense\n")
    go(page, "Subscriptions")
    page.get_by_role("button", name="Import").click()
    box = page.get_by_role("dialog")
    box.get_by_role("button", name="Import", exact=True).click()
    expect(box).to_contain_text("There is nothing to import yet")
    box.get_by_label("A file").set_input_files(file)
    box.get_by_role("button", name="Import", exact=True).click()
    expect(box.locator(".figure")).to_have_text("2 added, 0 replaced, 0 unchanged, 3 refused")
    refused = box.locator("tbody tr")
    expect(refused).to_have_count(3)
    expect(refused.nth(0)).to_contain_text("imported-2")
    expect(refused.nth(0)).to_contain_text("predicate is not closed, column 7")
    assert [int(cell) for cell in refused.locator("td:first-child").all_inner_texts()] == [2, 3, 5]
    assert "imported-4" in client
    box.get_by_label("Or lines").fill('{"id": "imported-1", "xpath": "//uno"}')
    box.get_by_label("A file").set_input_files([])
    box.get_by_role("button", name="Import", exact=True).click()
    expect(box.locator(".figure")).to_contain_text("1 replaced")
    page.keyboard.press("Escape")
    search(page, "imported-")
    with page.expect_download() as download:
        page.get_by_role("link", name="Export").click()
    exported = [json.loads(line) for line in Path(download.value.path()).read_text().splitlines()]
    assert [line["id"] for line in exported] == ["imported-1", "imported-4"]


@pytest.mark.parametrize("width", [1400, 800, 390])
def test_one_with_long_names_leaves_the_others_their_room(
    server: RunningServer, open_page: Callable[..., Page], width: int
) -> None:
    """Ids, subscribers and labels may have hundreds of characters, and nothing in them where a line could break."""
    owner = f"long{width}"
    with server.client(owner=owner) as client:
        client.add("long" + "x" * 190, "//" + "e" * 500, subscriber="s" * 200, labels={"l" * 300: "v" * 300})
        client.add("short", "//a")
        page = open_page(f"{server.url}/#subscriptions", width=width)
        page.get_by_label("Owner").select_option(owner)
        short = page.get_by_role("button", name="short", exact=True)
        expect(short).to_be_visible()
        sizes = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert sizes[0] <= sizes[1]
        room = short.bounding_box()
        assert room is not None
        assert room["height"] < 40
        for row in page.locator("tbody tr").all():
            box = row.bounding_box()
            assert box is not None
            assert box["height"] < 400
        client.remove_subscriber("s" * 200)
        client.remove_subscriber(owner)
