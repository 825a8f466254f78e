"""Every error that xsift raises on purpose: a stable code, what was wrong, where, and what to do.

    XsiftError
    ├── XPathError          a subscription's text cannot be used
    ├── DocumentError       a document is not well-formed, or passes a limit
    ├── SubscriptionError   an id is unknown or used twice, a file of subscriptions cannot be read
    ├── EngineError         an engine is unknown, was given a wrong option, or refuses a pattern
    ├── WorkloadError       a DTD or a generator parameter cannot be used
    ├── ServiceError        a server that was asked refused, or did not answer
    ├── StorageError        a saved matcher cannot be read
    └── TableError          a subscription table cannot be read, or was not changed

Codes are words joined by hyphens ("predicate-not-closed"). They are part of the public interface: scripts
may test them; the sentences may change.
"""

from __future__ import annotations

__all__ = [
    "DocumentError",
    "EngineError",
    "FailureWarning",
    "ServiceError",
    "StorageError",
    "SubscriptionError",
    "TableError",
    "WorkloadError",
    "XPathError",
    "XsiftError",
]


class XsiftError(Exception):
    """Base of all errors of xsift. `code` is stable, `message` is for people, `hint` says what to do.

    `place` is the file and line that a subscription stands on, if it came from a file; `row` is its row, counted from
    0, if it came in a table.
    """

    place: str = ""
    row: int | None = None

    def __init__(self, code: str, message: str, *, hint: str = "") -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        place = f"{self.place}: " if self.place else ""
        text = f"{place}{self.message}{self._where()}"
        return f"{text}: {self.hint} [{self.code}]" if self.hint else f"{text} [{self.code}]"

    def _where(self) -> str:
        return ""

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross process borders (Spark, multiprocessing), keyword arguments and all.
        return (_rebuild, (type(self), self.args, self.__dict__.copy()))


def _rebuild(kind: type[XsiftError], args: tuple[object, ...], state: dict[str, object]) -> XsiftError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


class XPathError(XsiftError):
    """A subscription's text cannot be used. `column` counts characters from 1; 0 means the whole text."""

    def __init__(self, code: str, message: str, *, column: int = 0, hint: str = "", id: str | None = None) -> None:
        super().__init__(code, message, hint=hint)
        self.column = column
        self.id = id

    def _where(self) -> str:
        column = f", column {self.column}" if self.column else ""
        return column + (f" (subscription {self.id!r})" if self.id is not None else "")


class DocumentError(XsiftError):
    """A document cannot be read to its end. Lines and columns count from 1, the byte offset from 0. `label` is what
    the document is called, or None.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        line: int = 0,
        column: int = 0,
        offset: int = 0,
        hint: str = "",
        label: str | None = None,
    ) -> None:
        super().__init__(code, message, hint=hint)
        self.line = line
        self.column = column
        self.offset = offset
        self.label = label

    def _where(self) -> str:
        return f", line {self.line}, column {self.column} (byte {self.offset})" if self.line else ""


class SubscriptionError(XsiftError):
    """An id is unknown or used twice, or a file of subscriptions cannot be read."""

    def __init__(self, code: str, message: str, *, id: str | None = None, hint: str = "") -> None:
        super().__init__(code, message, hint=hint)
        self.id = id


class EngineError(XsiftError):
    """An engine is unknown, was given an option that it does not have, or refuses a pattern."""


class WorkloadError(XsiftError):
    """A DTD or a parameter of a generator cannot be used."""


class ServiceError(XsiftError):
    """A server refused what it was asked, or did not answer. `status` is that of HTTP, 0 if there was no answer."""

    def __init__(self, code: str, message: str, *, status: int = 0, hint: str = "") -> None:
        super().__init__(code, message, hint=hint)
        self.status = status


class StorageError(XsiftError):
    """A file that should hold a saved matcher cannot be read as one."""


class TableError(XsiftError):
    """A subscription table cannot be read as asked, or a change to it was not made."""


class FailureWarning(UserWarning):
    """A subscription could not be decided on a document, and nobody asked for `failures`; all others were."""
