"""Document: what every method that takes a document works with. Its bytes, encoding and label stay together.

Document(b"<a/>")                        the document itself
Document("<a/>")                         as text: whatever encoding it declares, it is text already
Document(Path("news/1.xml"))             a file, read when it is its turn
Document(file)                           a file that is open for reading, in binary or text mode
Document(data, encoding="cp1252")        bytes whose declaration is missing or wrong
Document(data, label="invoice 7")        what errors and results call it
"""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from xsift.document.encodings import codec_of, utf8
from xsift.errors import DocumentError, XsiftError

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["Document", "DocumentSource", "Readable", "open_path", "read_piece"]


class Readable(Protocol):
    """A file that is open for reading, in binary or text mode."""

    def read(self, size: int, /) -> Buffer | str: ...


DocumentSource: TypeAlias = "Buffer | str | os.PathLike[str] | Readable | Document"
"""What every method that takes a document takes."""

PIECE = 1 << 20  # bytes that are read at a time


class Document:
    """One XML document: where its bytes are, which encoding they have if not the one that they declare, its label."""

    __slots__ = ("encoding", "label", "source")

    source: Any
    """What a reader opens: a buffer of bytes, a path, or an open file."""

    def __init__(self, source: Any, *, encoding: str | None = None, label: str | None = None) -> None:
        if encoding is not None and not isinstance(encoding, str):
            raise TypeError(f"encoding must be str, not {type(encoding).__name__}")
        self.label = label
        self.encoding = encoding
        if isinstance(source, Document):
            self.source = source.source
            self.encoding = encoding if encoding is not None else source.encoding
            self.label = label if label is not None else source.label
        elif isinstance(source, str):
            self.source, self.encoding = _text_bytes(source), "utf-8"
        elif isinstance(source, os.PathLike):
            self.source = source
            self.label = label if label is not None else os.fspath(source)
        elif _is_buffer(source) or hasattr(source, "read"):
            self.source = source
        else:
            raise DocumentError(
                "not-a-document",
                f"a document cannot be made of {type(source).__name__}",
                hint="it is bytes, str, a path (pathlib.Path), an open file, or an xsift.Document",
            )

    @property
    def in_memory(self) -> bool:
        """Whether its bytes are here already, and can be read again and again."""
        return _is_buffer(self.source)

    def codec(self) -> str:
        """The name of the codec that decodes it, or any slice of it. It must be in memory. Whether Python has such a
        codec, and the bytes are right in it, is not looked at."""
        return codec_of(self.source, self.encoding)

    def loaded(self, most_bytes: int) -> Document:
        """The same document in memory. Of one that is larger, just enough is read to see that it is too large."""
        if self.in_memory:
            return self
        try:
            if isinstance(self.source, os.PathLike):
                with open_path(self.source) as file:
                    data, encoding = _read(file, most_bytes)
            else:
                data, encoding = _read(self.source, most_bytes)
        except OSError as error:
            raise unreadable(self, error) from error
        return Document(data, encoding=encoding or self.encoding, label=self.label)

    def __repr__(self) -> str:
        size = f"{memoryview(self.source).nbytes:,} bytes" if self.in_memory else repr(self.source)
        encoding = f", encoding={self.encoding!r}" if self.encoding else ""
        label = f", label={self.label!r}" if self.label else ""
        return f"<Document of {size}{encoding}{label}>"


def unreadable(document: Document, error: OSError) -> DocumentError:
    """The error of a document whose file cannot be opened or read."""
    name = document.label or "the document"
    reason = f"{name} cannot be read: {error.strerror or error}"
    return DocumentError("unreadable-file", reason, label=document.label)


def open_path(path: os.PathLike[str]) -> io.FileIO:
    """Opens the file of a document. Raises OSError if that cannot be, also where the path could not be one."""
    try:
        return open(path, "rb", buffering=0)
    except ValueError as error:  # a null character in it, or half of a surrogate pair
        raise OSError(str(error)) from error


def read_piece(file: Readable, size: int) -> Buffer | str:
    """The next piece of an open file. Raises OSError, whatever it is that fails: it is an error of this document, and
    those beside it go on."""
    try:
        piece = file.read(size)
    except (OSError, XsiftError, MemoryError):
        raise
    except Exception as error:  # what is packed was cut off, text is in another encoding, the file was closed …
        raise OSError(str(error) or type(error).__name__) from error
    if not isinstance(piece, str) and not _is_buffer(piece):
        raise DocumentError(
            "not-a-document", f"read() of the file gave {type(piece).__name__}", hint="it must give bytes or str"
        )
    return piece


def _read(file: Readable, most_bytes: int) -> tuple[bytes, str | None]:
    """At most a little more than `most_bytes`; with "utf-8" if the file gave text."""
    pieces: list[bytes] = []
    size = 0
    encoding = None
    while size <= most_bytes:
        piece = read_piece(file, min(PIECE, most_bytes + 1 - size))
        if isinstance(piece, str):
            piece, encoding = utf8(piece), "utf-8"
        piece = bytes(piece)
        if not piece:
            break
        pieces.append(piece)
        size += len(pieces[-1])
    return b"".join(pieces), encoding


def _text_bytes(text: str) -> bytes:
    start = text.lstrip(" \t\r\n\ufeff")[:1]
    if start and start != "<":
        shown = text if len(text) <= 60 else text[:57] + "…"
        raise DocumentError(
            "not-a-document",
            f"{shown!r} is no XML document: it does not begin with '<'",
            hint="a str is the document itself; for a file give pathlib.Path(…)",
        )
    return utf8(text)


def _is_buffer(source: object) -> bool:
    if isinstance(source, bytes | bytearray | memoryview):
        return True
    try:
        memoryview(source).release()  # type: ignore[arg-type]
    except TypeError:
        return False
    except ValueError:  # it was one, and is closed: who reads it says so
        return True
    return True
