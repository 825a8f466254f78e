"""Which files in folders and archives are XML documents: by their names, or because they begin like one."""

from __future__ import annotations

__all__ = ["is_xml"]

XML_NAMES = (".xml", ".nitf", ".newsml", ".rss", ".atom", ".rdf", ".svg", ".xhtml", ".ubl", ".xbrl", ".gpx", ".kml")
OTHER_NAMES = (".html", ".htm")  # these begin like XML too
BEGINNINGS = (b"<", b"\xef\xbb\xbf<", b"\xff\xfe<\0", b"\xfe\xff\0<", b"<\0", b"\0<")


def is_xml(plain: str, head: bytes) -> bool:
    """Whether a file with that name (see `plain_name`) and that beginning is an XML document."""
    if plain.endswith(XML_NAMES):
        return True
    return head.lstrip(b" \t\r\n").startswith(BEGINNINGS) and not plain.endswith(OTHER_NAMES)
