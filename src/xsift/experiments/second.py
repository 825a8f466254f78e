"""Second workloads: figures on NITF once more, so that no verdict hangs on our DTDs alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from xsift.experiments.model import Figure, Second
from xsift.workload.presets import PRESETS

__all__ = ["overlaid", "second_figures"]


def overlaid(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Two tables in one: the upper one's keys win, tables in them are laid over each other in turn."""
    both = dict(below)
    for key, value in above.items():
        lower = both.get(key)
        both[key] = overlaid(lower, value) if isinstance(value, dict) and isinstance(lower, dict) else value
    return both


def second_figures(figures: Sequence[Figure], second: Second) -> list[Figure]:
    """The figures on NITF once more, on the second workload, with the same series and the same claims."""
    made: dict[str, Figure] = {}
    for figure in figures:
        own = figure.measured_in == figure.id
        if (own and not _is_nitf(figure)) or (not own and figure.measured_in not in made):
            continue
        id = f"{figure.id}-{second.id}"
        made[figure.id] = replace(
            figure,
            id=id,
            title=f"{figure.title} · {second.title}",
            workload=overlaid(figure.workload, second.workload),
            measured_in=id if own else made[figure.measured_in].id,
            second_of=figure.id,
        )
    return list(made.values())


def _is_nitf(figure: Figure) -> bool:
    """Whether its documents and subscriptions are made from our NITF, at every point."""
    workload = figure.workload
    if "mix" in workload or any("texts" in workload.get(part, {}) for part in ("documents", "subscriptions")):
        return False
    if {"like", "dtd"} & {figure.vary.parameter, *figure.vary.also}:
        return False
    preset = PRESETS.get(workload.get("like", ""))
    return bool(workload.get("dtd", preset.subscriptions.dtd if preset else "") == "nitf")
