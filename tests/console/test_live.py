"""Live: what comes in, what goes out, and one subscriber's stream."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, Route, expect

import xsift
from tests.console.conftest import go


def documents(page: Page) -> Locator:
    return page.get_by_role("region", name="Documents coming in")


def test_documents_come_in_and_broken_ones_show_their_error(page: Page, client: xsift.Client) -> None:
    client.add("live-hits", "//live")
    go(page, "Live")
    client.publish("<live>one</live>", label="a live one")
    row = documents(page).locator("li", has_text="a live one")
    expect(row).to_contain_text("1 match → 1 subscriber")
    expect(page.locator(".tiles")).to_contain_text("documents a second")
    with pytest.raises(xsift.DocumentError, match="line 3"):
        client.publish("<live>\n <deep>\n  text</live>", label="a mangled one")
    broken = documents(page).locator("li.broken", has_text="a mangled one")
    expect(broken).to_contain_text("does not match <deep>")
    broken.locator("summary").click()
    lines = broken.locator("pre").inner_text().split("\n")
    assert lines[2].endswith("  text</live>")
    assert lines[3].index("▲") - 7 in (6, 8)
    documents(page).get_by_label("Broken only").check()
    expect(row).to_be_hidden()
    expect(broken).to_be_visible()
    documents(page).get_by_label("Broken only").uncheck()
    row.locator("summary").click()
    expect(row.locator(".more")).to_contain_text("live-hits")
    row.get_by_role("button", name="Open in Try").click()
    expect(page.locator(".document .name")).to_contain_text("a live one")
    client.remove("live-hits")


def test_what_could_not_be_decided_is_said(page: Page, client: xsift.Client) -> None:
    client.add("costly", "/costly[count(//b[count(preceding-sibling::b[. != 'x']) > 5]) > 0]")
    go(page, "Live")
    client.publish("<costly>" + "<b/>" * 5000 + "</costly>", label="a costly one")
    row = documents(page).locator("li", has_text="a costly one")
    row.locator("summary").click()
    expect(row.locator(".more")).to_contain_text("Matched by nothing now.1 subscription could not be decided on it.")
    client.remove("costly")


def test_a_stream_of_fragments_can_be_paused_and_acknowledges_nothing(page: Page, client: xsift.Client) -> None:
    client.add("watched", "//news/title", subscriber="watcher", deliver="fragments")
    client.publish("<news><title>before</title></news>")
    go(page, "Live")
    page.get_by_label("Subscriber", exact=True).select_option(label="default / watcher")
    stream = page.get_by_role("region", name="Stream of a subscriber")
    expect(stream.locator(".delivery pre")).to_have_text("<title>before</title>")
    client.publish("<news><title>as it comes</title></news>", label="fresh")
    expect(stream.locator(".delivery").first).to_contain_text("fresh")
    expect(stream.locator(".delivery pre").first).to_have_text("<title>as it comes</title>")
    stream.get_by_role("button", name="Pause").click()
    client.publish("<news><title>while paused</title></news>")
    expect(stream.locator(".state")).to_contain_text("1 new one")
    expect(stream.locator(".delivery")).to_have_count(2)
    stream.get_by_role("button", name="Go on").click()
    expect(stream.locator(".delivery pre").first).to_have_text("<title>while paused</title>")
    assert client.get_subscriber("watcher")["waiting"] == 3
    client.remove_subscriber("watcher")


def test_much_at_once_stays_bounded(page: Page, client: xsift.Client) -> None:
    go(page, "Live")
    client.publish_many([f"<flood n='{number}'/>" for number in range(1500)])
    page.wait_for_function("() => document.querySelectorAll('.feed > li').length >= 200")
    client.publish("<last/>", label="the last one")
    expect(documents(page).locator("li").first).to_contain_text("the last one")
    assert page.locator(".feed > li").count() <= 400


def test_a_stream_that_was_refused_is_opened_again(page: Page, client: xsift.Client) -> None:
    """As by a server that starts: it answers 503 until it has its set, and then browsers try no more."""
    refused: list[str] = []

    def refuse_once(route: Route) -> None:
        if refused:
            route.continue_()
        else:
            refused.append(route.request.url)
            route.fulfill(status=503)

    page.route("**/activity", refuse_once)
    go(page, "Live")
    client.publish("<again/>", label="after it was refused")
    expect(documents(page).locator("li", has_text="after it was refused")).to_have_count(1)
    assert refused


def test_a_page_that_nobody_looks_at_rests(page: Page, client: xsift.Client) -> None:
    """Its stream is closed; when somebody looks again it comes back, and shows nothing twice."""
    go(page, "Live")
    client.publish("<once/>", label="only once")
    expect(documents(page).locator("li", has_text="only once")).to_have_count(1)
    page.evaluate("Object.defineProperty(document, 'hidden', { value: true, configurable: true })")
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    client.publish("<away/>", label="while away")
    page.evaluate("Object.defineProperty(document, 'hidden', { value: false, configurable: true })")
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(documents(page).locator("li", has_text="while away")).to_have_count(1)
    expect(documents(page).locator("li", has_text="only once")).to_have_count(1)
