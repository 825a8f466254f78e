"""Checks of the generators' parameters: one sentence for each way to get them wrong."""

from __future__ import annotations

from numbers import Integral

from xsift.errors import WorkloadError

__all__ = ["check_range", "check_whole"]


def check_range(name: str, value: float, least: float, most: float) -> None:
    """Raises unless `least <= value <= most`; what is not a number is out of range too."""
    if not least <= value <= most:
        raise WorkloadError(
            "parameter-out-of-range",
            f"The parameter {name!r} is {value:g}",
            hint=f"it must be between {least:g} and {most:g}",
        )


def check_whole(name: str, value: int, least: int, most: int) -> None:
    """The same for a number that counts something."""
    if not isinstance(value, Integral):
        raise WorkloadError(
            "parameter-not-whole", f"The parameter {name!r} is {value!r}", hint="it must be a whole number"
        )
    check_range(name, value, least, most)
