"""Quantities as people read them: 1.23 ms, 4.5 MB, 12,300."""

from __future__ import annotations

import math

__all__ = ["plain", "quantity", "short"]

STEPS: dict[str, tuple[tuple[float, str], ...]] = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")),
    "B": ((2.0**30, "GB"), (2.0**20, "MB"), (2.0**10, "KB"), (1.0, "B")),
    "size": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")),
}
COUNTS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
ALMOST = 0.9999  # of a step is the step: 999.9999 µs are 1 ms


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
    """A value with its unit: "s", "B" (in powers of 1024), "size" (bytes in powers of 1000), "1/s" or ""."""
    if unit == "1/s":
        return f"{plain(value)}/s"
    if not unit:
        return plain(value)
    factor, name = _step(value, unit)
    return f"{plain(value / factor)} {name}" if value else f"0 {STEPS[unit][-1][1] if unit != 's' else 's'}"


def short(value: float, unit: str = "") -> str:
    """A value as the label of a tick: as few characters as say it."""
    if not value:
        return "0"
    if unit in STEPS:
        factor, name = _step(value, unit)
        return f"{value / factor:.3g} {name}"
    factor, name = next((step for step in COUNTS if abs(value) >= step[0] * ALMOST), (1, ""))
    return f"{value / factor:.3g}{name}"


def _step(value: float, unit: str) -> tuple[float, str]:
    """The largest step of a unit that the value is not below."""
    if unit == "size" and value % 1024 == 0:
        unit = "B"  # a size that was chosen as a power of 2
    return next((step for step in STEPS[unit] if abs(value) >= step[0] * ALMOST), STEPS[unit][-1])
