"""What a definition says, as values: an experiment, its figures, series and claims. definition.py reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from xsift.experiments.claims import Check
from xsift.experiments.errors import ExperimentError
from xsift.experiments.rows import Setting
from xsift.experiments.tables import nearest
from xsift.experiments.templates import Template

__all__ = ["Claim", "Experiment", "Figure", "Headline", "Second", "Series", "Vary", "X"]

X = float | str


@dataclass(frozen=True)
class Vary:
    """The x axis: the parameter that varies, its values, and what changes along with it."""

    parameter: str
    values: tuple[X, ...]
    also: Mapping[str, tuple[Any, ...]]
    label: str
    labels: tuple[str, ...]
    unit: str

    @property
    def categories(self) -> bool:
        """Whether the values are names rather than numbers."""
        return isinstance(self.values[0], str)

    def settings(self, position: int) -> dict[str, Any]:
        """All parameters at one point of the axis, by their dotted names."""
        return {self.parameter: self.values[position]} | {
            name: values[position] for name, values in self.also.items()
        }

    def text(self, position: int) -> str:
        """How the point is called."""
        value = self.values[position]
        return self.labels[position] if self.labels else value if isinstance(value, str) else f"{value:,.10g}"


@dataclass(frozen=True)
class Series:
    """One line of a plot: an engine with its options, or a peer."""

    label: str
    engine: str
    peer: str
    options: Mapping[str, Any]
    workload: Mapping[str, Any]
    ordered: bool | None
    deduplicate: bool
    until: float | None
    documents: int | None  # goes through so many of the documents only
    may_be_missing: bool

    @property
    def name(self) -> str:
        """The name of the engine or of the peer."""
        return self.engine or self.peer


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper and the check that stands for it."""

    says: str
    place: str
    check: Check
    shows: Check | None
    note: str
    reason: Template  # why it does not hold, where it does not


@dataclass(frozen=True)
class Headline:
    """A number that the paper is known for, and where ours is."""

    says: str
    paper: str
    figure: str
    ours: Template
    why: Template


@dataclass(frozen=True)
class Second:
    """The second workload: each figure on NITF is measured again on it, as a figure of its own."""

    id: str
    title: str
    about: str
    workload: Mapping[str, Any]


@dataclass(frozen=True)
class Figure:
    """A plot (or several of the same measurements), its series and its claims."""

    id: str
    title: str
    place: str
    measures: tuple[str, ...]
    show: str
    x_scale: str
    y_scale: str
    workload: Mapping[str, Any]
    vary: Vary
    series: tuple[Series, ...]
    claims: tuple[Claim, ...]
    warm_up: int
    repeats: int
    seconds: float
    additions: int
    drop_order_dependent: bool
    new_documents: bool  # each round has documents of its own
    note: str
    measured_in: str  # the id of the figure whose measurements it shows; its own id if it has its own
    where: str  # its place in the file, for errors
    second_of: str = ""  # the id of the figure that this one is the second workload of

    @property
    def all_measures(self) -> list[str]:
        """What its plots and its claims need."""
        needed = [part for claim in self.claims for part in (claim.check, claim.shows, claim.reason) if part]
        return sorted({*self.measures, *(measure for part in needed for measure in part.measures)})

    @property
    def setting(self) -> Setting:
        """What its checks may name."""
        return Setting(self.measures[0], self.vary.values, [one.label for one in self.series])


@dataclass(frozen=True)
class Experiment:
    """One definition file."""

    name: str
    title: str
    paper: str
    about: str
    minutes: float
    figures: tuple[Figure, ...]
    headlines: tuple[Headline, ...]
    second: Second | None
    text: str = field(repr=False)

    def chosen(self, ids: Sequence[str]) -> Experiment:
        """The experiment with only these figures, and those whose measurements they show."""
        known = {figure.id: figure for figure in self.figures}
        for id in ids:
            if id not in known:
                raise ExperimentError(
                    "unknown-figure", f"there is no figure {id!r}", place=self.name, hint=nearest(id, known)
                )
        wanted = {*ids, *(known[id].measured_in for id in ids)}
        return replace(self, figures=tuple(figure for figure in self.figures if figure.id in wanted)) if ids else self
