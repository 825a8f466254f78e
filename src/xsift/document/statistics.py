"""How documents were read: by the scanner, or by libexpat and why. For those who wonder where the time goes."""

from __future__ import annotations

from dataclasses import dataclass

from xsift.document.reader import reading_totals

__all__ = ["DocumentStatistics", "document_statistics"]

# In the order of ScanReason in scanner.hpp.
REASONS = ("switched-off", "encoding", "internal-subset", "entity", "limit", "syntax")


@dataclass(frozen=True)
class DocumentStatistics:
    """What this process has read so far.

    scanned_documents, scanned_bytes   read by the scanner alone
    expat_documents, expat_bytes       read by libexpat, some after the scanner had read a part
    reasons                            why these were: the number of documents by reason

    switched-off     the reader was told not to scan
    encoding         neither UTF-8 nor US-ASCII
    internal-subset  a document type declaration with declarations of its own
    entity           a reference to an entity that is not predefined
    limit            one of the Limits may be passed, which libexpat decides
    syntax           not well-formed, or too unusual for the scanner
    """

    scanned_documents: int
    scanned_bytes: int
    expat_documents: int
    expat_bytes: int
    reasons: dict[str, int]


def document_statistics() -> DocumentStatistics:
    """How many documents, and bytes, this process has read with the scanner and with libexpat, and why the latter."""
    scanned_documents, scanned_bytes, expat_bytes, counts = reading_totals()
    reasons = {reason: count for reason, count in zip(REASONS, counts, strict=True) if count}
    return DocumentStatistics(scanned_documents, scanned_bytes, sum(counts), expat_bytes, reasons)
