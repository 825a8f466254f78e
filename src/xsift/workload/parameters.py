"""Checks of the generators' parameters: one sentence for each way to get them wrong."""

from __future__ import annotations

from xsift.errors import WorkloadError

__all__ = ["check_range"]


def check_range(name: str, value: float, least: float, most: float) -> None:
    """Raises unless `least <= value <= most`; what is not a number is out of range too."""
    if not least <= value <= most:
        raise WorkloadError(
            "parameter-out-of-range",
            f"The parameter {name!r} is {value:g}",
            hint=f"it must be between {least:g} and {most:g}",
        )
