"""Takes the pictures of docs/console.md: every screen, three widths, light and dark, with the data of `make console`.

make console-pictures
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tools.console_demo import ConsoleDemo

PICTURES = Path("docs/pictures")
WIDTHS = {1400: 900, 800: 1000, 390: 844}
SCREENS = ("try", "missing", "proposals", "subscriptions", "subscription", "live", "engine", "signin")


def main() -> None:
    """Takes them all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, default=PICTURES)
    parser.add_argument("--only", nargs="*", default=SCREENS, choices=SCREENS)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with ConsoleDemo(Path("build/console-pictures")) as demo, sync_playwright() as playwright:
        demo.fill()
        demo.go_on_beside()
        time.sleep(25)
        browser = launch(playwright)
        inside = [screen for screen in options.only if screen != "signin"]
        take(browser, demo, inside, options.folder)
        if "signin" in options.only:
            demo.stop_publishing()
            demo.close_the_door()
            take(browser, demo, ["signin"], options.folder)


def take(browser: Browser, demo: ConsoleDemo, screens: Sequence[str], folder: Path) -> None:
    """Takes pictures of some screens in every width, light and dark."""
    for scheme in ("light", "dark"):
        for width, height in WIDTHS.items():
            page = open_page(browser, demo.url, width, height, scheme)
            for screen in screens:
                prepare(page, demo, screen)
                path = folder / f"console-{screen}-{width}-{scheme}.png"
                page.screenshot(path=path)
                if shutil.which("pngquant"):  # a third of the size
                    subprocess.run(["pngquant", "--force", "--output", path, "64", path], check=True)
            page.context.close()


def launch(playwright) -> Browser:  # type: ignore[no-untyped-def]
    """Debian's chromium. As root it cannot have a sandbox."""
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    return playwright.chromium.launch(
        executable_path="/usr/bin/chromium", args=[*flags, "--font-render-hinting=none"]
    )


def open_page(browser: Browser, url: str, width: int, height: int, scheme: str) -> Page:
    """A window of that width."""
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    page = context.new_page()
    page.goto(url)
    page.wait_for_selector(".verdict b, .gate")
    return page


def prepare(page: Page, demo: ConsoleDemo, screen: str) -> None:
    """Brings a screen to where it has something to show."""
    shown = {"missing": "try", "proposals": "try", "subscription": "subscriptions"}.get(screen, screen)
    if screen == "signin":
        return
    page.keyboard.press("Escape")
    page.goto(f"{demo.url}/#{shown}")
    page.reload()
    page.wait_for_selector("h1", state="attached")
    match screen:
        case "try":
            page.wait_for_selector(".caught .figure")
        case "missing":
            page.get_by_label("Sample document").select_option("sample-feed.xml")
            page.get_by_role("textbox", name="Expression").fill("/feed/entry[category/@term = 'release']/title")
            page.wait_for_selector(".steps .hint")
        case "proposals":
            page.locator(".row [data-element]", has_text="<hl1").first.click()
            page.wait_for_selector(".proposals .choice")
        case "subscriptions":
            page.get_by_label("Sort").select_option("matches")
            page.wait_for_selector(".table tbody tr")
        case "subscription":
            page.wait_for_selector(".table tbody tr")
            page.locator(".table .link").first.click()
            page.get_by_role("button", name="History").click()
            page.wait_for_selector(".history li")
        case "live":
            page.get_by_label("Subscriber", exact=True).select_option(label="default / default")
            page.wait_for_selector(".delivery")
            page.locator(".feed .broken summary").first.click()
            page.wait_for_selector(".feed .more pre")
        case "engine":
            page.wait_for_selector(".bars li")
            page.wait_for_selector(".failing .list, .failing table")
    page.wait_for_timeout(400)


if __name__ == "__main__":
    main()
