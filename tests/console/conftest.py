"""A real server, a real browser (Debian's chromium), and a page that must not complain nor ask anybody else."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, Error, Page, Playwright, expect, sync_playwright

import xsift
from tests.service.conftest import SETTINGS
from tests.service.running import RunningServer, running

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
Scheme = Literal["light", "dark"]
WAIT_MILLISECONDS = 30_000  # the machine may have others to serve
expect.set_options(timeout=WAIT_MILLISECONDS)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Without keys: whoever is on this machine is the admin `default`."""
    settings = SETTINGS.replace("body_bytes = 1000000", "body_bytes = 16000000")
    with running(tmp_path_factory.mktemp("console"), settings=settings) as server:
        yield server


@pytest.fixture(scope="package")  # an event loop runs in this thread until it ends: others want their own
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as playwright:
        yield playwright


@pytest.fixture(scope="package")
def browser(playwright: Playwright) -> Iterator[Browser]:
    if not os.path.exists(CHROMIUM) and "CI" not in os.environ:
        pytest.skip("chromium is not installed: tools/setup does that")
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    browser = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
    yield browser
    browser.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens pages. Whatever they complain about, and every request to elsewhere, fails the test."""
    contexts: list[BrowserContext] = []
    complaints: list[str] = []
    expected: list[str] = []

    def open(url: str, width: int = 1400, height: int = 900, scheme: Scheme = "light", expect: str = "") -> Page:
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        context.set_default_timeout(WAIT_MILLISECONDS)
        contexts.append(context)
        page = context.new_page()
        if expect:
            expected.append(expect)
        page.on("console", lambda message: complaints.extend([message.text] if message.type == "error" else []))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
        origin = url.split("/#")[0].rstrip("/")
        page.on("request", lambda asked: complaints.extend([] if asked.url.startswith(origin) else [asked.url]))
        page.goto(url)
        return page

    yield open
    for context in contexts:
        context.close()
    found = [text for text in complaints if not any(words in text for words in expected)]
    assert not found, found


@pytest.fixture
def page(server: RunningServer, open_page: Callable[..., Page]) -> Page:
    """The console as the admin sees it. What the API refuses is logged by the browser: that is no complaint."""
    page = open_page(server.url, expect="the server responded with a status of")
    page.wait_for_selector(".verdict b")
    return page


@pytest.fixture
def client(server: RunningServer) -> Iterator[xsift.Client]:
    with server.client() as client:
        yield client


def go(page: Page, name: str) -> None:
    """To a screen, as a person goes there."""
    page.get_by_role("link", name=name, exact=True).click()
    page.wait_for_function("name => document.title.startsWith(name)", arg=name)


def write(page: Page, xpath: str) -> None:
    """Writes an expression into Try."""
    page.get_by_role("textbox", name="Expression").fill(xpath)


def paste(page: Page, text: str) -> None:
    """Pastes a text into the document's pane."""
    page.locator(".view").focus()
    page.evaluate(
        """text => {
          const data = new DataTransfer();
          data.setData('text/plain', text);
          const options = { clipboardData: data, bubbles: true, cancelable: true };
          document.activeElement.dispatchEvent(new ClipboardEvent('paste', options));
        }""",
        text,
    )


def marked(page: Page) -> str:
    """The text that is marked as selected, as far as it can be seen."""
    try:
        return str(page.evaluate("[...document.querySelectorAll('.row .m')].map(e => e.textContent).join('')"))
    except Error:
        return ""
