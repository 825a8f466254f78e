"""Signing in with an API key; each owner sees their own, each role what it may."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.console.conftest import go
from tests.service.running import RunningServer, running

KEYS = {"ops": ["admin"], "alice": ["publish", "subscribe"], "bob": ["subscribe"], "wire": ["publish"]}
REFUSED = "the server responded with a status of 4"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningServer, dict[str, str]]]:
    folder = tmp_path_factory.mktemp("guarded")
    made = {}
    for owner, roles in KEYS.items():
        options = [option for role in roles for option in ("--role", role)]
        command = [sys.executable, "-m", "xsift.cli", "serve", "--data", str(folder / "data"), "keys", "add", owner]
        ran = subprocess.run([*command, *options], capture_output=True, text=True, check=True)
        made[owner] = ran.stdout.strip()
    with running(folder) as server:
        for owner in ("alice", "bob"):
            with server.client(key=made[owner]) as client:
                client.add(f"of-{owner}", f"//{owner}", labels={"whose": owner})
        with server.client(key=made["alice"]) as client:
            client.publish("<alice/>", label="of alice")
        yield server, made


def sign_in(page: Page, key: str) -> None:
    page.get_by_label("API key").fill(key)
    page.keyboard.press("Enter")


def test_a_wrong_key_and_then_the_right_one(
    guarded: tuple[RunningServer, dict[str, str]], open_page: Callable[..., Page]
) -> None:
    server, keys = guarded
    page = open_page(server.url, expect=REFUSED)
    expect(page.get_by_label("API key")).to_be_focused()
    for wrong in ("nonsense", "xs_a_b", "schlüssel", keys["alice"] + "x"):
        sign_in(page, wrong)
        expect(page.get_by_role("alert")).to_contain_text("not")
    sign_in(page, keys["alice"])
    expect(page.locator("#who")).to_contain_text("alice")
    assert page.evaluate("document.cookie") == ""  # no script can read the key
    assert page.evaluate("JSON.stringify([{ ...localStorage }, { ...sessionStorage }])") == "[{},{}]"
    page.reload()
    expect(page.locator("#who")).to_contain_text("alice")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("API key")).to_be_focused()
    page.reload()
    expect(page.get_by_label("API key")).to_be_visible()


def test_who_signs_in_next_does_not_see_what_the_one_before_wrote(
    guarded: tuple[RunningServer, dict[str, str]], open_page: Callable[..., Page]
) -> None:
    server, keys = guarded
    page = open_page(server.url, expect=REFUSED)
    sign_in(page, keys["alice"])
    page.get_by_role("textbox", name="Expression").fill("//secret")
    expect(page.locator(".verdict")).to_contain_text("Does not match")
    for owner, shown in (("alice", "//secret"), ("bob", "//hl1[contains(., 'Spark')]")):
        page.get_by_role("button", name="Sign out").click()
        sign_in(page, keys[owner])
        expect(page.locator("#who")).to_contain_text(owner)
        expect(page.get_by_role("textbox", name="Expression")).to_have_value(shown)


def test_each_owner_sees_their_own(
    guarded: tuple[RunningServer, dict[str, str]], open_page: Callable[..., Page]
) -> None:
    server, keys = guarded
    page = open_page(server.url, expect=REFUSED)
    sign_in(page, keys["bob"])
    go(page, "Subscriptions")
    expect(page.locator(".total")).to_have_text("1–1 of 1 subscription")
    expect(page.locator(".table")).to_contain_text("of-bob")
    expect(page.get_by_label("Owner")).to_have_count(0)
    go(page, "Try")
    expect(page.locator(".caught")).to_contain_text("no documents yet that you may see")
    go(page, "Live")
    expect(page.get_by_label("Subscriber", exact=True).locator("option")).to_have_count(2)
    expect(page.get_by_text("of alice")).to_have_count(0)
    go(page, "Engine room")
    expect(page.locator("main")).to_contain_text("shown to operators")
    expect(page.locator(".plot")).to_have_count(0)


def test_an_admin_sees_everybody_and_acts_for_them(
    guarded: tuple[RunningServer, dict[str, str]], open_page: Callable[..., Page]
) -> None:
    server, keys = guarded
    page = open_page(server.url, expect=REFUSED)
    sign_in(page, keys["ops"])
    go(page, "Subscriptions")
    expect(page.locator(".total")).to_have_text("1–2 of 2 subscriptions")
    page.get_by_label("Owner").select_option("bob")
    expect(page.locator(".total")).to_have_text("1–1 of 1 subscription")
    page.get_by_role("button", name="of-bob").click()
    page.get_by_role("dialog").get_by_label("Labels").fill("whose=bob\nby=ops")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".table")).to_contain_text("by=ops")
    with server.client(key=keys["bob"]) as bob:
        assert bob.get("of-bob")["labels"] == {"whose": "bob", "by": "ops"}


def test_a_publisher_may_try_but_has_no_subscriptions(
    guarded: tuple[RunningServer, dict[str, str]], open_page: Callable[..., Page]
) -> None:
    server, keys = guarded
    page = open_page(server.url + "/#subscriptions", expect=REFUSED)
    sign_in(page, keys["wire"])
    expect(page.locator(".verdict")).to_contain_text("Selects 1 node")
    assert page.locator("#screens a").all_inner_texts() == ["Try", "Live"]
    expect(page.get_by_role("button", name="Subscribe with this")).to_have_count(0)


def test_a_key_that_is_revoked_leads_back_to_the_door(
    guarded: tuple[RunningServer, dict[str, str]], open_page: Callable[..., Page]
) -> None:
    server, keys = guarded
    page = open_page(server.url, expect=REFUSED)
    sign_in(page, keys["alice"])
    expect(page.locator(".verdict b")).to_be_visible()
    page.context.clear_cookies()
    go_to = page.get_by_role("link", name="Subscriptions", exact=True)
    go_to.click()
    expect(page.get_by_role("alert")).to_contain_text("You were signed out")
