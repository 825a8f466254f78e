"""The pages about the service: their examples run against a server, and answer what the pages say."""

from __future__ import annotations

import contextlib
import io
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.service.running import running
from xsift.service.settings import Settings

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGE = DOCS / "serve.md"
HOW_TO = DOCS / "how-to" / "serve-others.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


def as_pattern(text: str) -> str:
    """What a text block shows; … stands for what is different each time."""
    return ".*?".join(map(re.escape, text.strip("\n").split("…")))


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize(
    ("page", "outputs"), [(PAGE, 3), (HOW_TO, 2)], ids=lambda value: getattr(value, "name", None)
)
def test_the_examples_of_the_page(page: Path, outputs: int, tmp_path: Path) -> None:
    with running(tmp_path) as server:
        names: dict[str, object] = {}
        printed = ""
        checked = 0
        for language, text in BLOCK.findall(page.read_text()):
            text = text.replace("localhost:8080", f"localhost:{server.port}").replace(
                "127.0.0.1:8080", f"127.0.0.1:{server.port}"
            )
            if language == "sh":
                ran = subprocess.run(
                    ["sh", "-c", text], capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False
                )
                assert ran.returncode in (0, 28), ran.stderr  # 28: the stream was cut off, as the page says
                printed = ran.stdout
                assert '"status":5' not in printed
            elif language == "py":
                output = io.StringIO()
                with contextlib.redirect_stdout(output):
                    exec(compile(text, str(page), "exec"), names)
                printed = output.getvalue()
            elif language == "text":
                assert re.fullmatch(as_pattern(text), printed.strip("\n"), re.S), printed
                checked += 1
        assert checked == outputs
        if page == PAGE:
            assert (tmp_path / "subscriptions.ndjson").read_text().count("\n") == 3


def test_every_setting_is_on_the_page() -> None:
    page = PAGE.read_text()
    for name, field in Settings.model_fields.items():
        section = field.annotation
        fields = getattr(section, "model_fields", None)
        if fields is None:
            assert f"`{name}`" in page, name
            continue
        for inner in fields:
            assert f"`{name}.{inner}`" in page or f"`.{inner}`" in page, f"{name}.{inner}"
