"""Comparing: the verdicts of two runs of an experiment, claim by claim. What changes between runs was not settled."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from xsift.experiments.errors import ExperimentError
from xsift.experiments.results import NOT_MEASURED, Results
from xsift.experiments.store import Store

__all__ = ["RunComparison", "compare", "states", "verdicts_of"]


@dataclass(frozen=True)
class RunComparison:
    """How the verdicts of two runs compare."""

    same: int
    different: list[tuple[str, str, str, str]]  # figure, claim, the verdict of one run and of the other
    in_one_only: int  # claims that only one of the runs judged

    def lines(self) -> Iterator[str]:
        """As text, a line each."""
        for figure, says, one, other in self.different:
            yield f"{figure}: {says}\n    {one} / {other}"
        yield f"{self.same} verdicts the same, {len(self.different)} different, {self.in_one_only} in one run only"


def compare(one: Path, other: Path) -> RunComparison:
    """Compares two runs: folders that `run` wrote, or that `keep` did (results/NAME)."""
    first, second = verdicts_of(one), verdicts_of(other)
    both = [claim for claim in first if claim in second]
    return RunComparison(
        sum(first[claim] == second[claim] for claim in both),
        [(*claim, first[claim], second[claim]) for claim in both if first[claim] != second[claim]],
        len(first.keys() ^ second.keys()),
    )


def verdicts_of(folder: Path) -> dict[tuple[str, str], str]:
    """The verdicts in a folder, of a run or that `keep` wrote."""
    kept = folder / "verdicts.json"
    if kept.exists():
        try:
            claims = json.loads(kept.read_text(encoding="utf-8"))["claims"]
            found = {(claim["figure"], claim["says"]): claim["verdict"] for claim in claims}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ExperimentError("no-run", f"{error}", place=str(kept)) from None
        return {claim: state for claim, state in found.items() if state != NOT_MEASURED}
    return states(Results.of(Store(folder)))


def states(results: Results) -> dict[tuple[str, str], str]:
    """By figure and claim: its verdict, where it was measured."""
    verdicts = results.all_verdicts()
    return {(figure.id, one.claim.says): one.state for figure, one in verdicts if one.state != NOT_MEASURED}
