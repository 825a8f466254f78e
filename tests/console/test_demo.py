"""`make console`: the server that it starts has something to show."""

from __future__ import annotations

from pathlib import Path

import httpx

from tools.console_demo import ConsoleDemo


def test_there_is_data_in_it(tmp_path: Path) -> None:
    with ConsoleDemo(tmp_path / "console") as demo:
        demo.fill(documents=80)
        assert "console/app.js" in httpx.get(demo.url).text
        counted = httpx.get(f"{demo.url}/subscriptions", params={"count": "true", "most": 1}).json()
        assert counted["total"] > 300
        preview = httpx.post(f"{demo.url}/subscriptions/preview", json={"xpath": "//hl1"}).json()
        assert preview["documents"] > preview["matched"] > 10
        assert httpx.get(f"{demo.url}/documents", params={"broken": "true"}).json()["items"]
