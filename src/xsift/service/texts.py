"""Documents as text, for what is said in JSON."""

from __future__ import annotations

import xsift
from xsift.errors import DocumentError

__all__ = ["as_text"]


def as_text(data: bytes, encoding: str | None) -> str:
    """The text of a document, in the encoding that it was given with or else has. Raises DocumentError."""
    try:
        return data.decode(xsift.Document(data, encoding=encoding).codec()).removeprefix("\ufeff")
    except UnicodeError as error:
        at = getattr(error, "start", 0)
        line, column = data.count(b"\n", 0, at) + 1, at - data.rfind(b"\n", 0, at)
        message = "the document is not in the encoding that it declares"
        raise DocumentError("incorrect-encoding", message, line=line, column=column, offset=at) from error
    except LookupError as error:
        message, hint = "the document's encoding is not supported", "decode the document and pass it as str"
        raise DocumentError("unsupported-encoding", message, hint=hint, line=1, column=1) from error
