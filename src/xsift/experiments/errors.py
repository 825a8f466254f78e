"""What can be wrong with an experiment: its file, or what it asks for."""

from __future__ import annotations

from xsift.errors import XsiftError

__all__ = ["ExperimentError"]


class ExperimentError(XsiftError):
    """An experiment cannot be read or run. `place` says where: the file, and the table and key in it."""

    def __init__(self, code: str, message: str, *, place: str = "", hint: str = "") -> None:
        super().__init__(code, message, hint=hint)
        self.place = place
