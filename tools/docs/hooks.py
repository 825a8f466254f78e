"""What the docs site has beside docs/: the pages at the root of the repository, and the examples' data.

A link is written as it works in the repository (`../SECURITY.md`, `docs/matching.md`, `../examples`). In the site
these pages lie beside those of docs/, so the links are rewritten. One to a folder leads to the list of its files.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent.parent
PAGES = (
    "README.md",
    "DESIGN.md",
    "SECURITY.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "examples/README.md",
)
DATA = ROOT / "examples"
LINK = re.compile(r"(\]\(|\bsrc=\")([^)\s\"#]*)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages of the root, and the examples as files that can be fetched."""
    for page in PAGES:
        files.append(_file(page, config))
    for path in sorted(DATA.rglob("*")):
        if path.is_file() and path.suffix not in (".md", ".pyc"):
            files.append(_file(path.relative_to(ROOT).as_posix(), config))
    return files


def _file(path: str, config: MkDocsConfig) -> File:
    file = File.generated(config, path, abs_src_path=str(ROOT / path))
    if path == "README.md":  # the site's first page
        file.dest_uri, file.url = "index.html", "index.html"
    return file


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrites the links of a page. Links inside of code are left alone, for they are none."""
    here = page.file.src_uri
    original = here if here in PAGES else f"docs/{here}"
    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.M | re.S)
    parts[::2] = [LINK.sub(lambda link: link[1] + _target(original, here, link[2]), part) for part in parts[::2]]
    return "".join(parts)


def _target(original: str, here: str, link: str) -> str:
    """A link of the repository's page `original`, as one of the site's page `here`."""
    if not link or ":" in link:
        return link
    path = posixpath.normpath(posixpath.join(posixpath.dirname(original), link))
    if path.startswith("docs/"):
        path = path.removeprefix("docs/")
    elif path.split("/")[0] == "examples" and (ROOT / path).is_dir():
        path = "examples/README.md"
    return posixpath.relpath(path, posixpath.dirname(here) or ".")


def on_page_context(context: dict[str, Any], **_: Any) -> dict[str, Any]:
    """No link to a source that is not there: generated pages have none."""
    context["page"].edit_url = None
    return context
