"""The engine room: plots, memory, what fails, dead letters that are replayed."""

from __future__ import annotations

from playwright.sync_api import Page, expect

import xsift
from tests.console.conftest import go
from tests.service.receiver import Receiver
from tests.service.running import RunningServer, until


def test_the_engine_at_work(page: Page, client: xsift.Client) -> None:
    client.add("engine", "//engine[@n > 5]")
    for number in range(20):
        client.publish(f"<engine n='{number}'/>")
    go(page, "Engine room")
    expect(page.locator(".tiles")).to_contain_text("version of the set")
    expect(page.locator(".plot")).to_have_count(9)
    drawn = page.locator(".plot .line-0").first
    page.wait_for_function("() => (document.querySelector('.plot .line-0')?.getAttribute('d') || '').includes('L')")
    assert drawn.get_attribute("d")
    expect(page.get_by_role("img", name="Matching a document")).to_have_count(1)
    expect(page.locator(".bars li").first).to_be_visible()
    expect(page.get_by_role("region", name="Waiting")).to_contain_text("pull")
    client.remove("engine")


def test_dead_letters_are_replayed_and_forgotten(page: Page, server: RunningServer) -> None:
    receiver = Receiver(500)
    with server.client(owner="hooked") as client:
        client.put_subscriber("hook", kind="webhook", url=receiver.url)
        client.add("hooked", "//hooked", subscriber="hook")
        for number in range(3):
            client.publish(f"<hooked n='{number}'/>", label=f"letter {number}")
        until(lambda: len(client.dead_letters()) == 3, 60)
        go(page, "Engine room")
        failing = page.get_by_role("region", name="Deliveries that fail")
        letters = failing.locator("tr", has_text="letter ")
        expect(letters).to_have_count(3)
        expect(letters.first).to_contain_text("500")
        failing.get_by_role("button", name="Replay", exact=False).filter(has_text="Replay").nth(1).click()
        expect(page.locator("#said")).to_contain_text("it failed again")
        receiver.answer = 204
        letters.filter(has_text="letter 1").get_by_role("button", name="Replay").click()
        expect(letters).to_have_count(2)
        letters.filter(has_text="letter 0").get_by_role("button", name="Forget").click()
        page.get_by_role("button", name="Forget it").click()
        expect(letters).to_have_count(1)
        assert [letter["delivery"]["document"]["label"] for letter in client.dead_letters()] == ["letter 2"]
        client.publish("<hooked n='9'/>")
        receiver.answer = 500
        client.publish("<hooked n='10'/>", label="letter 10")
        until(lambda: len(client.dead_letters()) == 2, 60)
        receiver.answer = 204
        page.reload()
        failing.get_by_role("button", name="Replay all").click()
        expect(page.locator("#said")).to_contain_text("2 of 2 were received")
        expect(failing).to_contain_text("None.")
        client.remove_subscriber("hook")


def test_a_subscriber_that_fails_is_named(page: Page, server: RunningServer) -> None:
    receiver = Receiver(410)
    with server.client(owner="gone") as client:
        client.put_subscriber("gone", kind="webhook", url=receiver.url)
        client.add("gone", "//gone", subscriber="gone")
        client.publish("<gone/>")
        until(lambda: client.get_subscriber("gone")["state"] == "ended")
        go(page, "Engine room")
        failing = page.get_by_role("region", name="Deliveries that fail")
        expect(failing.locator("tr", has_text=receiver.url)).to_contain_text("ended")
        client.remove_subscriber("gone")
