"""The page itself: what a browser lets it do, documents that are hostile, the keyboard, and people who see little."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources

import httpx
import pytest
from playwright.sync_api import Page, expect

import xsift
from tests.console.conftest import go, paste, write
from tests.service.running import RunningServer

AXE = resources.files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
HOSTILE = """<html xmlns="http://www.w3.org/1999/xhtml">
  <script>window.hacked = 1; alert(1)</script>
  <body onload="window.hacked = 2"><img src="x" onerror="window.hacked = 3"/>
  <svg xmlns="http://www.w3.org/2000/svg" onload="window.hacked = 4"/>
  <a href="javascript:window.hacked=5">&lt;img src=x onerror=window.hacked=6&gt;</a></body>
</html>"""
MARKUP = "<img src=x onerror=window.hacked=7><script>window.hacked=8</script>"


def test_what_the_browser_is_told(server: RunningServer) -> None:
    answer = httpx.get(server.url)
    policy = answer.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert "require-trusted-types-for 'script'" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert httpx.get(server.url, headers={"if-none-match": answer.headers["etag"]}).status_code == 304
    assert httpx.get(f"{server.url}/console/app.js").headers["content-type"].startswith("text/javascript")
    assert httpx.get(f"{server.url}/console/__init__.py").status_code == 404
    assert httpx.get(f"{server.url}/console/..%2f__init__.py").status_code == 404


def test_every_asset_is_shipped_and_small() -> None:
    files = list(resources.files("xsift.service.console").joinpath("assets").iterdir())
    assert {file.name for file in files} >= {"index.html", "style.css", "app.js", "sample-news.xml"}
    assert sum(len(file.read_bytes()) for file in files) < 200_000
    for file in files:
        text = file.read_text()
        assert "innerHTML" not in text, file.name
        assert "://" not in text.replace("http://www.w3.org/", "") or file.name.startswith("sample"), file.name


def test_a_script_in_a_document_does_not_run(page: Page, client: xsift.Client) -> None:
    client.add(
        "hostile", "//*", labels={"l": MARKUP}, metadata={"m": MARKUP}, subscriber="hostile", deliver="fragments"
    )
    client.publish(HOSTILE, label=MARKUP)
    with pytest.raises(xsift.DocumentError):
        client.publish(HOSTILE + MARKUP, label=MARKUP)
    write(page, "//*")
    paste(page, HOSTILE)
    expect(page.locator(".view")).to_contain_text("<script>window.hacked = 1; alert(1)</script>")
    expect(page.locator(".verdict")).to_contain_text("Selects 6 nodes")
    page.locator(".row [data-element]", has_text="<script").click()
    expect(page.locator(".proposals .choice").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".caught li").first).to_contain_text(MARKUP)
    go(page, "Subscriptions")
    page.get_by_label("Search").fill("hostile")
    expect(page.locator(".labels").first).to_contain_text(MARKUP)
    page.get_by_role("button", name="hostile", exact=True).click()
    expect(page.get_by_role("dialog").get_by_label("Labels")).to_have_value(f"l={MARKUP}")
    page.keyboard.press("Escape")
    go(page, "Live")
    page.get_by_label("Subscriber", exact=True).select_option(label="default / hostile")
    expect(page.locator(".delivery").first).to_contain_text("window.hacked = 1")
    for row in page.locator(".feed summary", has_text=MARKUP).all()[:2]:
        row.click()
    expect(page.locator(".feed .more pre").first).to_contain_text("window.hacked")
    go(page, "Engine room")
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img, main script").count() == 0
    client.remove_subscriber("hostile")


def focused(page: Page) -> str:
    return str(page.evaluate("document.activeElement.outerHTML.slice(0, 200)"))


def tab_to(page: Page, what: str) -> None:
    for _ in range(60):
        if page.evaluate("selector => document.activeElement.matches(selector)", what):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{what} is not reached; at {focused(page)}")


def test_everything_with_the_keyboard_alone(page: Page, client: xsift.Client) -> None:
    page.keyboard.press("Tab")
    assert "To the page" in focused(page)
    tab_to(page, ".write textarea")
    page.keyboard.press("Control+A")
    page.keyboard.type("//keyword")
    expect(page.locator(".verdict")).to_contain_text("Selects 2 nodes")
    tab_to(page, ".view")
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    expect(page.locator(".view-frame .unseen")).to_have_text("/nitf/head/title")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".view-frame .unseen")).to_have_text("/nitf/head")
    page.keyboard.press("Enter")
    expect(page.locator(".proposals .choice").first).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".view")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".proposals .choice").first).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".write textarea")).to_be_focused()
    expect(page.locator(".write textarea")).to_have_value("//nitf/head")
    tab_to(page, ".write .main")
    page.keyboard.press("Enter")
    page.keyboard.type("by-keyboard")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert "Subscribe with this" in focused(page)
    page.keyboard.press("Enter")
    page.keyboard.type("by-keyboard")
    page.keyboard.press("Enter")
    expect(page.locator("#said")).to_contain_text("Subscribed: by-keyboard")
    assert "by-keyboard" in client

    page.keyboard.press("Shift+Tab")
    page.evaluate("document.activeElement.blur()")
    tab_to(page, "a[href='#subscriptions']")
    page.keyboard.press("Enter")
    tab_to(page, "[type=search]")
    page.keyboard.type("by-keyboard")
    expect(page.locator(".total")).to_have_text("1–1 of 1 subscription")
    tab_to(page, ".table .link")
    page.keyboard.press("Enter")
    tab_to(page, "dialog .danger")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Close").last).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#said")).to_contain_text("Removed: by-keyboard")
    assert "by-keyboard" not in client
    page.evaluate("document.activeElement.blur()")
    tab_to(page, "a[href='#live']")
    page.keyboard.press("Enter")
    tab_to(page, "[aria-pressed]")
    page.keyboard.press("Space")
    expect(page.locator("[aria-pressed=true]")).to_have_count(1)


def violations(page: Page) -> list[str]:
    page.evaluate(AXE)
    found = page.evaluate(
        "async rules => (await axe.run(document, { runOnly: rules, resultTypes: ['violations'] })).violations",
        ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    )
    return [
        f"{item['id']}: {node['html'][:200]} {node['any'] and node['any'][0]['message']}"
        for item in found
        for node in item["nodes"]
    ]


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (390, "dark")])
def test_accessibility(
    server: RunningServer, client: xsift.Client, open_page: Callable[..., Page], width: int, scheme: str
) -> None:
    client.add("accessible", "//accessible", labels={"team": "all"})
    client.publish("<accessible/>", label="an accessible one")
    with pytest.raises(xsift.DocumentError):
        client.publish("<inaccessible>", label="a broken one")
    page = open_page(server.url, width=width, scheme=scheme)
    expect(page.locator(".verdict")).to_contain_text("Selects")
    expect(page.locator(".caught .figure, .caught .note").first).to_be_visible()
    assert violations(page) == []
    write(page, "//q:hl1[")
    expect(page.locator(".problem")).not_to_be_empty()
    assert violations(page) == []
    write(page, "/q:hl1")
    expect(page.locator(".namespaces")).to_be_visible()
    page.locator(".row [data-element]", has_text="<hl1").first.click()
    expect(page.locator(".proposals .choice").first).to_be_visible()
    assert violations(page) == []
    go(page, "Subscriptions")
    expect(page.locator(".table tbody tr").first).to_be_visible()
    assert violations(page) == []
    page.locator(".table .link").first.click()
    page.get_by_role("button", name="History").click()
    expect(page.locator(".history li").first).to_be_visible()
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Import").click()
    assert violations(page) == []
    page.keyboard.press("Escape")
    go(page, "Live")
    expect(page.locator(".feed li.broken").first).to_be_visible()
    page.locator(".feed .broken summary").first.click()
    expect(page.locator(".feed .more pre").first).to_be_visible()
    page.evaluate("() => document.querySelectorAll('.feed > li:nth-child(n + 12)').forEach(row => row.remove())")
    assert violations(page) == []
    go(page, "Engine room")
    expect(page.locator(".bars li").first).to_be_visible()
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
