"""The console: a page for people who write subscriptions, and for those who watch over them.

`assets/` has all of it, as it is served: HTML, CSS and ES modules, no build step. The page talks to the same API as
everybody else. docs/console.md shows it, DESIGN.md says why it is made like this.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import resources

__all__ = ["POLICY", "Asset", "assets"]

# Nothing inline, nothing from elsewhere, and no text is ever made into markup: the browser itself refuses.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".xml": "text/plain; charset=utf-8",  # a sample: to be read, not to be shown as a page
}


@dataclass(frozen=True)
class Asset:
    """A file of the page."""

    body: bytes
    media_type: str
    tag: str
    """Changes when the body does: browsers ask with it whether what they have is still right."""


def assets() -> dict[str, Asset]:
    """All files of the page by their paths on the server."""
    found: dict[str, Asset] = {}
    for file in resources.files(__name__).joinpath("assets").iterdir():
        suffix = "." + file.name.rpartition(".")[2]
        if suffix in TYPES:
            body = file.read_bytes()
            path = "/" if file.name == "index.html" else f"/console/{file.name}"
            found[path] = Asset(body, TYPES[suffix], f'"{hashlib.sha256(body).hexdigest()[:20]}"')
    return found
