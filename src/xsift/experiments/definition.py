"""Definitions: an experiment as its TOML file says it, read and checked. docs/experiments.md describes the format.

Reading finds whatever is wrong with the file itself: keys, types, labels, checks. Whether the engines, their options
and the workload's parameters exist is found out by `plan.py`: a file may well name an engine that is not built here.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from xsift.experiments.claims import Check
from xsift.experiments.errors import ExperimentError
from xsift.experiments.measures import MEASURES, is_measure
from xsift.experiments.model import Claim, Experiment, Figure, Headline, Second, Series, Vary
from xsift.experiments.rows import NotMeasured, Setting
from xsift.experiments.second import overlaid, second_figures
from xsift.experiments.tables import Table, nearest
from xsift.experiments.templates import Template

__all__ = ["LEAST_ROUNDS", "PEERS", "load", "names", "read"]

FOLDER = Path(__file__).parent / "definitions"
PEERS = ("lxml-loop", "lxml-block", "lxml-xslt", "spark-xpath", "yfilter-1.0")
LEAST_ROUNDS = 3
UNLIMITED = "unlimited"  # for options: TOML has no word for None


def names() -> list[str]:
    """The experiments that come with xsift."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load(name: str) -> Experiment:
    """The experiment of this name, or in the file at this path (which ends in .toml)."""
    path = Path(name) if name.endswith(".toml") else FOLDER / f"{name}.toml"
    if not name.endswith(".toml") and name not in names():
        raise ExperimentError("unknown-experiment", f"no experiment is called {name!r}", hint=nearest(name, names()))
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ExperimentError("unreadable-definition", f"{error}", place=str(path)) from None
    return read(text, path.stem)


def read(text: str, name: str) -> Experiment:
    """The experiment that a definition's text states."""
    try:
        top = Table(tomllib.loads(text), f"{name}.toml")
    except tomllib.TOMLDecodeError as error:
        raise ExperimentError("not-toml", f"{error}", place=f"{name}.toml") from None
    title = top.take("title", str)
    paper = top.take("paper", str, "")
    about = top.take("about", str, "").strip()
    minutes = top.at_least(0.1, "minutes", float, 15.0)
    shared = top.table("defaults")
    for key in ("id", "title", "place", "vary", "series", "claim", "from", "only"):
        if shared.has(key):
            raise shared.error("unknown-key", f"{key!r} belongs to a figure, not to the defaults")
    defaults = shared.rest()
    second = _second(top.table("second")) if top.has("second") else None
    figures: list[Figure] = []
    for table in top.tables("figure"):
        figures.append(_figure(table, defaults, figures))
    headlines = tuple(_headline(table, figures) for table in top.tables("headline"))
    top.finish()
    if not figures:
        raise top.error("no-figure", "the file has no [[figure]]")
    if second:
        figures += second_figures(figures, second)
    return Experiment(name, title, paper, about, minutes, tuple(figures), headlines, second, text)


def _second(table: Table) -> Second:
    second = Second(
        table.take("id", str),
        table.take("title", str),
        table.take("about", str, "").strip(),
        _workload(table.table("workload")),
    )
    table.finish()
    return second


def _headline(table: Table, figures: Sequence[Figure]) -> Headline:
    id = table.take("figure", str)
    found = next((figure for figure in figures if figure.id == id), None)
    if found is None:
        raise table.error("unknown-figure", f"there is no figure {id!r}", nearest(id, [f.id for f in figures]))
    headline = Headline(
        table.take("says", str),
        table.take("paper", str),
        id,
        Template(table.take("ours", str), found.setting, table.place),
        Template(table.take("why", str), found.setting, table.place),
    )
    table.finish()
    return headline


LOOKS = ("y", "show", "x_scale", "y_scale", "note")  # the keys of a figure that have nothing to do with measuring


def _figure(own: Table, defaults: Mapping[str, Any], before: Sequence[Figure]) -> Figure:
    source = _source(own, before)
    shared = {key: value for key, value in defaults.items() if source is None or key in LOOKS}
    table = Table(overlaid(shared, own.rest()), own.place)
    id = table.take("id", str)
    if any(figure.id == id for figure in before):
        raise table.error("same-id", f"two figures have the id {id!r}")
    vary = source.vary if source else _vary(table.table("vary"))
    series = _only(table, source.series) if source else _all_series(table, vary)
    measures = _measures(table)
    setting = Setting(measures[0], vary.values, [one.label for one in series])
    looks: dict[str, Any] = {
        "id": id,
        "title": table.take("title", str),
        "place": table.take("place", str, ""),
        "measures": measures,
        "show": table.choice("show", ("value", "scaleup"), "value"),
        "x_scale": table.choice("x_scale", ("linear", "log"), "linear"),
        "y_scale": table.choice("y_scale", ("linear", "log"), "linear"),
        "series": series,
        "claims": tuple(_claim(claim, setting) for claim in table.tables("claim")),
        "note": table.take("note", str, "").strip(),
        "where": table.place,
    }
    figure = replace(source, **looks) if source else _measured(table, vary, looks)
    table.finish()
    _check_figure(figure, table)
    return figure


def _measured(table: Table, vary: Vary, looks: dict[str, Any]) -> Figure:
    """A figure with measurements of its own."""
    return Figure(
        **looks,
        vary=vary,
        measured_in=looks["id"],
        workload=_workload(table.table("workload")),
        warm_up=table.at_least(1, "warm_up", int, 1),
        repeats=table.at_least(LEAST_ROUNDS, "repeats", int, 7),
        seconds=table.at_least(0, "seconds", float, 20.0),
        additions=table.at_least(0, "additions", int, 0),
        drop_order_dependent=table.take("drop_order_dependent", bool, False),
        new_documents=table.take("new_documents", bool, False),
    )


def _source(table: Table, before: Sequence[Figure]) -> Figure | None:
    """The figure whose measurements this one shows, if it says `from`."""
    id = table.take("from", str, "")
    if not id:
        return None
    own = {figure.id: figure for figure in before if figure.measured_in == figure.id}
    if id not in own:
        raise table.error("unknown-figure", f"'from' names {id!r}", f"a figure above this one: {nearest(id, own)}")
    return own[id]


def _only(table: Table, series: tuple[Series, ...]) -> tuple[Series, ...]:
    labels = [one.label for one in series]
    only = table.list_of("only", str, labels)
    for label in only:
        if label not in labels:
            raise table.error("unknown-label", f"'only' names {label!r}", nearest(label, labels))
    return tuple(one for one in series if one.label in only)


def _measures(table: Table) -> tuple[str, ...]:
    given = table.take("y", object, "match_seconds")
    measures = given if isinstance(given, list) else [given]
    for measure in measures:
        if not isinstance(measure, str) or not is_measure(measure):
            known = [*MEASURES, "memory.NAME", "counter.NAME", "property.NAME"]
            raise table.error("unknown-measure", f"'y' is {measure!r}", nearest(str(measure), known))
    if not measures:
        raise table.error("bad-value", "'y' is empty", "a measure, or a list of them")
    return tuple(measures)


def _vary(table: Table) -> Vary:
    parameter = table.take("parameter", str)
    values = table.take("values", list)
    changes = {name: tuple(_listed(table, name, also)) for name, also in table.table("also").rest().items()}
    for name in (parameter, *changes):
        _check_parameter(table, name)
    if not values or not (all(map(_is_number, values)) or all(isinstance(value, str) for value in values)):
        raise table.error("bad-value", f"'values' is {values!r}", "some numbers, or some strings")
    if len(set(values)) < len(values) or (_is_number(values[0]) and values != sorted(values)):
        raise table.error("bad-value", f"'values' is {values!r}", "each once, and numbers ascending")
    labels = table.list_of("labels", str, [])
    for key, members in (("labels", labels), *changes.items()):
        if len(members) != len(values) and (members or key != "labels"):
            raise table.error("bad-value", f"{key!r} has {len(members)} members, 'values' has {len(values)}")
    label = table.take("label", str, parameter.partition(".")[2].replace("_", " ") or parameter)
    unit = table.choice("unit", ("", "bytes", "seconds"), "")
    table.finish()
    return Vary(parameter, tuple(values), changes, label, tuple(labels), unit)


def _listed(table: Table, name: str, values: object) -> list[Any]:
    if not isinstance(values, list):
        raise table.error("wrong-type", f"'also' gives {name!r} {values!r}, which is no list")
    return values


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_parameter(table: Table, name: str) -> None:
    kind, dot, member = name.partition(".")
    if name in ("like", "dtd") or (
        kind in ("documents", "subscriptions", "option") and dot and member.isidentifier()
    ):
        return
    hint = "documents.NAME, subscriptions.NAME, option.NAME, like or dtd"
    raise table.error("unknown-parameter", f"there is no parameter {name!r}", hint)


def _workload(table: Table) -> dict[str, Any]:
    """A workload's table as it is given, its keys checked; the generators check their parameters themselves."""
    workload: dict[str, Any] = {key: table.take(key, str, None) for key in ("like", "dtd")}
    workload |= {key: table.take(key, dict, None) for key in ("documents", "subscriptions")}
    if table.has("mix"):
        workload["mix"] = [_workload(part) for part in table.tables("mix")]
        if not workload["mix"]:
            raise table.error("bad-value", "'mix' is empty", "a list of workloads")
    table.finish()
    return {key: value for key, value in workload.items() if value is not None}


def _all_series(table: Table, vary: Vary) -> tuple[Series, ...]:
    series = tuple(_series(one, vary) for one in table.tables("series"))
    if not series:
        raise table.error("no-series", "the figure has no [[figure.series]]")
    labels = [one.label for one in series]
    for label in labels:
        if labels.count(label) > 1:
            raise table.error("same-label", f"two series have the label {label!r}")
    return series


def _series(table: Table, vary: Vary) -> Series:
    engine, peer = table.take("engine", str, ""), table.take("peer", str, "")
    if bool(engine) == bool(peer):
        raise table.error("no-engine", "a series has either 'engine' or 'peer'")
    if peer and peer not in PEERS:
        raise table.error("unknown-peer", f"there is no peer {peer!r}", nearest(peer, PEERS))
    given = table.table("options").rest()
    options = {name: None if value == UNLIMITED else value for name, value in given.items()}
    if peer and options:
        raise table.error("bad-value", "a peer has no options")
    if table.has("until") and vary.categories:
        raise table.error("bad-value", "'until' needs an axis of numbers")
    series = Series(
        label=table.take("label", str),
        engine=engine,
        peer=peer,
        options=options,
        workload=_workload(table.table("workload")),
        ordered=table.take("ordered", bool, None),
        deduplicate=table.take("deduplicate", bool, True),
        until=table.take("until", float, None),
        documents=table.at_least(1, "documents", int, None),
        may_be_missing=table.choice("if_missing", ("error", "skip"), "error") == "skip",
    )
    table.finish()
    return series


def _claim(table: Table, setting: Setting) -> Claim:
    says = table.take("says", str)
    check = Check(table.take("check", str), setting, table.place)
    shown = table.take("shows", str, "")
    shows = Check(shown, setting, table.place) if shown else None
    reason = Template(table.take("reason", str, ""), setting, table.place)
    note = table.take("note", str, "").strip()
    claim = Claim(says, table.take("place", str, ""), check, shows, note, reason)
    table.finish()

    def ones(measure: str, label: str) -> dict[int, float]:
        return dict.fromkeys(range(len(setting.values)), 1.0)

    # A rehearsal with made-up numbers finds what looking at names alone does not: rows where numbers must be.
    try:
        check.holds(ones)
        if shows:
            shows.value(ones)
        reason.filled(ones)
    except NotMeasured:
        pass
    return claim


def _check_figure(figure: Figure, table: Table) -> None:
    for part in ("documents", "subscriptions"):
        varied = f"{part}.number" in (figure.vary.parameter, *figure.vary.also)
        stated = figure.workload.get(part, {})
        if figure.measured_in == figure.id and not varied and "number" not in stated and "texts" not in stated:
            hint = "it is what --scale multiplies, so presets do not fill it in"
            raise table.error("missing-key", f"workload.{part}.number is missing", hint)
    if figure.new_documents and figure.drop_order_dependent:
        hint = "which subscriptions are dropped is found out on the documents before the rounds"
        raise table.error("bad-value", "'new_documents' does not go with 'drop_order_dependent'", hint)
    if figure.new_documents and any(series.peer for series in figure.series):
        raise table.error("bad-value", "'new_documents' is for engines", "leave the peers out")
    needs_additions = {"additions_per_second", "removals_per_second"} & set(figure.all_measures)
    if needs_additions and not figure.additions and figure.measured_in == figure.id:
        raise table.error("missing-key", f"{min(needs_additions)} needs 'additions'")
    if figure.show == "scaleup" and (len(figure.vary.values) < 2 or figure.vary.categories):
        raise table.error("bad-value", "scale-up needs an axis of at least two numbers")
    if figure.x_scale == "log" and not all(_is_number(value) and value > 0 for value in figure.vary.values):  # type: ignore[operator]
        raise table.error("bad-value", "'x_scale' is 'log'", "all values must be numbers above 0")
