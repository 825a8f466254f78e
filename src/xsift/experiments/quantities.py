"""Quantities as people read them: 1.23 ms, 4.5 MB, 12,300."""

from __future__ import annotations

import math

__all__ = ["plain", "quantity", "short"]

SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
BYTES = ((2**30, "GB"), (2**20, "MB"), (2**10, "KB"), (1, "B"))
COUNTS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def plain(value: float) -> str:
    """Three significant digits, thousands separated, no exponent unless it is needed."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    if abs(value) < 1e-3:
        return f"{value:.2e}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def quantity(value: float, unit: str) -> str:
    """A value with its unit: "s", "B", "1/s" or ""."""
    if unit == "1/s":
        return f"{plain(value)}/s"
    if not unit:
        return plain(value)
    if not value:
        return f"0 {unit}"
    steps = SECONDS if unit == "s" else BYTES
    factor, name = next((step for step in steps if abs(value) >= step[0]), steps[-1])
    return f"{plain(value / factor)} {name}"


def short(value: float, unit: str = "") -> str:
    """A value as the label of a tick: as few characters as say it."""
    if unit in ("s", "B"):
        steps = SECONDS if unit == "s" else BYTES
        factor, name = next((step for step in steps if abs(value) >= step[0] * 0.9999), steps[-1])
        return f"{_trimmed(value / factor)} {name}" if value else "0"
    for factor, name in COUNTS:
        if abs(value) >= factor * 0.9999:
            return f"{_trimmed(value / factor)}{name}"
    return _trimmed(value)


def _trimmed(value: float) -> str:
    return f"{value:.3g}"
