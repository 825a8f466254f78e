"""The HTML report: one file that needs nothing else. Style, plots and data are all in it."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from xsift.experiments.exports import as_csv
from xsift.experiments.looks import Look, looks
from xsift.experiments.machine import added_text, cores_text
from xsift.experiments.markup import element, expression, prose, text
from xsift.experiments.measures import Summary, described, titled, unit_of, wall_of
from xsift.experiments.model import Figure
from xsift.experiments.plot import Axis, Line, Mark, legend, plot
from xsift.experiments.plot import described as spoken
from xsift.experiments.quantities import quantity
from xsift.experiments.results import NOT_MEASURED, X_UNITS, Results, Verdict, counted
from xsift.experiments.rows import Number, Row
from xsift.experiments.style import STYLE

__all__ = ["page"]

# Hovering over a line or its label fades the others. Everything else works without scripts.
SCRIPT = """
for (const plot of document.querySelectorAll("svg.plot")) {
  for (const part of plot.querySelectorAll(".series")) {
    const all = plot.querySelectorAll(`.series[data-series="${part.dataset.series}"]`);
    const focus = on => {
      plot.classList.toggle("focused", on);
      all.forEach(series => series.classList.toggle("focus", on));
    };
    part.addEventListener("mouseenter", () => focus(true));
    part.addEventListener("mouseleave", () => focus(false));
  }
}
"""


def page(results: Results) -> str:
    """The whole report."""
    figures = results.experiment.figures
    looked = looks([[one.label for one in results.series(figure)] for figure in figures])
    body = element(
        "main",
        _header(results),
        _overview(results),
        *(_section(results, figure, looked) for figure in _in_order(figures)),
        _footer(results),
    )
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{text(results.experiment.title)}: xsift experiment</title><style>{STYLE}</style></head><body>",
            body,
            f"<script>{SCRIPT}</script>",
            "</body></html>",
        ]
    )


def _in_order(figures: Sequence[Figure]) -> list[Figure]:
    """Each figure with its second workload right after it."""
    again = {figure.second_of: figure for figure in figures if figure.second_of}
    shown = []
    for figure in figures:
        if not figure.second_of:
            shown += [figure, *([again.pop(figure.id)] if figure.id in again else [])]
    return [*shown, *again.values()]


def _header(results: Results) -> str:
    experiment, run = results.experiment, results.run
    machine = run["machine"]
    memory = f", {quantity(machine['memory_bytes'], 'B')}" if machine.get("memory_bytes") else ""
    facts = {
        "Machine": f"{machine['processor']}, {cores_text(machine)}{memory}",
        "System": machine["system"],
        "Versions": f"xsift {machine['xsift']}{_commit(machine)}, Python {machine['python']}, "
        f"lxml {machine['lxml']} (libxml2 {machine['libxml2']})",
        "Measured": f"{run['written_at'][:10]}{'' if run['finished'] else ' (not finished)'}{added_text(run)}",
        "Scale": "full"
        if results.scale == 1
        else f"{results.scale:g} of the subscriptions and documents; what is said above is of all of them",
        "Times": "CPU time; wall time is beside it in the numbers",
    }
    listed = "".join(element("div", element("dt", text(k)), element("dd", text(v))) for k, v in facts.items())
    about = "".join(element("p", prose(paragraph)) for paragraph in _paragraphs(experiment.about))
    return element(
        "header",
        element("h1", text(experiment.title)),
        element("p", text(experiment.paper), kind="paper"),
        element("div", about, kind="about"),
        element("dl", listed, kind="facts"),
        _warning(results),
        _not_measured(results),
    )


def _not_measured(results: Results) -> str:
    """The figures that were left out, by reason."""
    boxes = [
        element("div", element("b", "Not measured: "), text(f"{', '.join(ids)}: {reason}."), kind="left-out")
        for reason, ids in results.reasons_left_out().items()
    ]
    return "".join(boxes)


def _warning(results: Results) -> str:
    if not results.busy:
        return ""
    said = (
        f"The machine was busy while this was measured: its load was up to {results.load:.1f} on "
        f"{cores_text(results.run['machine'])}. Times are CPU times, and all series of a point suffered alike, so "
        "ratios can be trusted more than times."
    )
    return element("div", text(said), kind="left-out")


def _commit(machine: dict[str, str]) -> str:
    return f" ({machine['commit']})" if machine.get("commit") else ""


def _paragraphs(plain: str) -> list[str]:
    return [paragraph for paragraph in plain.split("\n\n") if paragraph.strip()]


def _overview(results: Results) -> str:
    verdicts = results.all_verdicts()
    if not verdicts:
        return ""
    again = {figure.second_of: results.verdicts(figure) for figure in results.experiment.figures if figure.second_of}
    second = results.experiment.second.title if results.experiment.second else ""
    rows = []
    for figure in results.experiment.figures:
        if figure.second_of:
            continue
        for at, verdict in enumerate(results.verdicts(figure)):
            beside = _badge(again[figure.id][at]) if figure.id in again else ""
            rows.append(
                element(
                    "tr",
                    element("td", _badge(verdict)),
                    element("td", beside) if again else "",
                    element("td", prose(verdict.claim.says)),
                    element("td", _link(results, figure)),
                )
            )
    heads = ["verdict", *([second] if again else []), "claim", "figure"]
    head = element("thead", element("tr", *(element("th", text(name)) for name in heads)))
    heading = element("h2", text(counted([verdict for _, verdict in verdicts])))
    if again:  # on a phone the table's head is not seen
        heading += element("p", text(f"The second verdict is that on {second}."), kind="phone soft")
    return element("section", heading, element("table", head, element("tbody", *rows)), kind="card overview")


def _link(results: Results, figure: Figure) -> str:
    called = text(_called(figure))
    return element("a", called, href=f"#{_anchor(figure)}") if results.is_measured(figure) else called


def _badge(verdict: Verdict) -> str:
    return element("span", text(verdict.state), kind=f"badge {verdict.state.replace(' ', '-')}")


def _anchor(figure: Figure) -> str:
    return "figure-" + "".join(c if c.isalnum() else "-" for c in figure.id)


def _called(figure: Figure) -> str:
    return f"Figure {figure.id}" if figure.id[:1].isdigit() else figure.id


def _section(results: Results, figure: Figure, looked: dict[str, Look]) -> str:
    if not results.is_measured(figure):
        return ""
    place = element("div", text(figure.place), kind="place") if figure.place else ""
    heading = element("div", element("h2", prose(results.wording(figure, _heading(figure)))), place, kind="heading")
    notes = "".join(element("p", prose(one)) for one in _paragraphs(results.wording(figure, figure.note)))
    claims = [_claim(results, figure, verdict) for verdict in results.verdicts(figure)]
    plots = [_plot(results, figure, measure, looked) for measure in figure.measures]
    beside = claims and len(plots) == 1  # two plots fill a row; claims go beside one alone
    return element(
        "section",
        heading,
        element(
            "div",
            element("div", *plots, kind="plots"),
            element("div", notes, kind="note") if notes else "",
            _failures(results, figure),
            element("div", *claims, kind="claims") if claims else "",
            kind="beside" if beside else None,
        ),
        _numbers(results, figure),
        _workloads(results, figure),
        kind="card",
        id=_anchor(figure),
    )


def _heading(figure: Figure) -> str:
    called = f"Figure {figure.second_of or figure.id}" if figure.id[:1].isdigit() else figure.second_of or figure.id
    return f"{called} · {figure.title}"


def _plot(results: Results, figure: Figure, measure: str, looked: dict[str, Look]) -> str:
    unit = unit_of(measure)
    positions = range(len(figure.vary.values))
    numbers = [value for at in positions if not isinstance(value := results.x(figure, at), str)]
    names = [results.x_text(figure, at) for at in positions] if figure.vary.categories else []
    lines = [
        Line(results.wording(figure, one.label), _marks(results, figure, measure, one.label), looked[one.label])
        for one in results.series(figure)
    ]
    vary = figure.vary
    x = Axis(vary.label, X_UNITS[vary.unit], figure.x_scale == "log", numbers, names, vary.labels)
    y = Axis("", unit, figure.y_scale == "log" and figure.show == "value")
    title = f"{titled(measure, figure.show)}{' (log scale)' if y.log else ''}"
    said = f"{title} over {x.label}: {', '.join(line.label for line in lines if line.marks)}"
    drawn = [plot(lines, x, y, said, narrow=narrow) for narrow in (False, True)]
    if drawn[0] == drawn[1]:  # nothing was measured
        drawn.pop()
    heading = element("div", text(title[:1].upper() + title[1:]), kind="plot-title")
    return element("div", heading, *drawn, legend(lines))


def _marks(results: Results, figure: Figure, measure: str, label: str) -> list[Mark]:
    unit = unit_of(measure)
    marks = []
    for at, one in sorted(results.shown(figure, measure, label).items()):
        quartiles = (one.lower_quartile, one.upper_quartile)
        said = spoken(
            results.wording(figure, label), results.x_text(figure, at), one.median, unit, quartiles, one.number
        )
        x = results.x(figure, at)
        place = float(at) if isinstance(x, str) else float(x)
        marks.append(Mark(place, one.median, *quartiles, one.least, one.most, said))
    return marks


def _failures(results: Results, figure: Figure) -> str:
    lines = [
        element(
            "div",
            element("b", text(f"{results.wording(figure, one.label)} at {one.x}")),
            text(f": {one.reason}"),
            kind="failure",
        )
        for one in results.failures(figure)
    ]
    lines += [
        element(
            "div",
            element("b", text(results.wording(figure, label))),
            text(f": not measured: {reason}"),
            kind="left-out",
        )
        for label, reason in results.left_out(figure)
    ]
    return "".join(lines)


def _claim(results: Results, figure: Figure, verdict: Verdict) -> str:
    claim = verdict.claim
    why = claim.note if verdict.state == NOT_MEASURED else f"{verdict.reason}\n\n{claim.note}"
    reason = element("p", text(f"{verdict.reason}."), kind="soft") if verdict.state == NOT_MEASURED else ""
    return element(
        "div",
        element("div", _badge(verdict), element("span", text(verdict.sure_text), kind="sure")),
        element("p", prose(claim.says)),
        element("div", text(claim.place), kind="place") if claim.place else "",
        element("p", text(f"{verdict.without}."), kind="soft") if verdict.without else "",
        *(element("p", prose(paragraph), kind="why") for paragraph in _paragraphs(why)),
        reason,
        element("code", text(claim.check.text), kind="check"),
        _evidence(results, figure, verdict.evidence),
        kind="claim",
    )


def _evidence(results: Results, figure: Figure, evidence: Sequence[tuple[str, Number | Row]]) -> str:
    if not evidence:
        return ""
    positions = sorted({at for _, value in evidence if isinstance(value, Row) for at in value.points})
    if not positions:
        rows = [_pair(shown, value) for shown, value in evidence if isinstance(value, Number)]
        return element("div", element("table", element("tbody", *rows)), kind="evidence")
    head = [element("th", *_expression(shown), kind=_emphasis(shown)) for shown, _ in evidence]
    rows = [
        element(
            "tr",
            element("th", text(results.x_text(figure, at))),
            *(element("td", text(_at(value, at)), kind=_emphasis(shown)) for shown, value in evidence),
        )
        for at in positions
    ]
    heading = element("thead", element("tr", element("th", text(figure.vary.label)), *head))
    return element("div", element("table", heading, element("tbody", *rows)), kind="evidence")


def _pair(shown: str, value: Number) -> str:
    number = element("td", text(quantity(value.value, value.unit)), kind=_emphasis(shown))
    return element("tr", element("th", *_expression(shown), kind=_emphasis(shown)), number)


def _expression(shown: str) -> list[str]:
    return [text(shown)] if shown == "ratio" else [expression(shown)]


def _emphasis(shown: str) -> str | None:
    return "ratio" if shown == "ratio" else None


def _at(value: Number | Row, at: int) -> str:
    number = value.value if isinstance(value, Number) else value.points.get(at)
    return "" if number is None else quantity(number, value.unit)


def _numbers(results: Results, figure: Figure) -> str:
    """The numbers behind the plots, a table for each measure, wall times after the CPU times."""
    measures = [*figure.measures, *(one for one in figure.all_measures if one not in figure.measures)]
    measures += [wall for one in measures if (wall := wall_of(one)) and wall not in measures]
    tables = [_table(results, figure, measure) for measure in measures]
    return element("details", element("summary", "Numbers"), element("div", *tables, kind="numbers"))


def _table(results: Results, figure: Figure, measure: str) -> str:
    unit = unit_of(measure)
    series = results.series(figure)
    labels = (element("th", text(results.wording(figure, one.label))) for one in series)
    head = element("tr", element("th", text(figure.vary.label)), *labels)
    rows = []
    for at in range(len(figure.vary.values)):
        cells = (_cell(results.summary(figure, measure, one.label, at), unit) for one in series)
        rows.append(element("tr", element("th", text(results.x_text(figure, at))), *cells))
    caption = element("caption", text(described(measure)))
    return element("table", caption, element("thead", head), element("tbody", *rows))


def _cell(one: Summary | None, unit: str) -> str:
    if one is None:
        return element("td", "–")
    spread = (
        f"{quantity(one.lower_quartile, unit)} to {quantity(one.upper_quartile, unit)}" if one.number > 1 else None
    )
    return element("td", text(quantity(one.median, unit)), title=spread)


WORKLOAD = {
    "documents": "documents",
    "document_bytes": "bytes each",
    "elements": "elements each",
    "depth": "depth",
    "subscriptions": "subscriptions",
    "patterns": "distinct patterns",
    "match_share": "matched by a document",
}


def _workloads(results: Results, figure: Figure) -> str:
    """What the workloads were like."""
    rows = []
    for at in range(len(figure.vary.values)):
        measured = results.points.get((figure.measured_in, at))
        for facts in measured.workloads if measured else ():
            cells = [_fact(key, facts.get(key)) for key in WORKLOAD]
            rows.append(
                element(
                    "tr", element("th", text(results.x_text(figure, at))), *(element("td", text(c)) for c in cells)
                )
            )
    if not rows:
        return ""
    head = element(
        "tr", element("th", text(figure.vary.label)), *(element("th", text(name)) for name in WORKLOAD.values())
    )
    table = element("table", element("thead", head), element("tbody", *rows))
    return element("details", element("summary", "Workload"), element("div", table, kind="numbers"))


def _fact(key: str, value: float | None) -> str:
    if value is None:
        return "–"
    return f"{100 * value:.2g} %" if key == "match_share" else f"{value:,.5g}" if value < 10000 else f"{value:,.0f}"


def _footer(results: Results) -> str:
    encoded = base64.b64encode(as_csv(results).encode()).decode()
    name = results.experiment.name
    link = element("a", "the numbers as CSV", href=f"data:text/csv;base64,{encoded}", download=f"{name}.csv")
    return element(
        "footer",
        element(
            "p",
            "Points are medians over the rounds, in CPU time; bands are the quartiles, whiskers the least and the "
            "most. In a round every engine goes through all documents once, one engine after the other. A verdict "
            "that comes out otherwise in more than one of ten draws of the medians, within their errors, or in "
            "another run, is open. All engines gave the same answers, which were "
            "compared, unless a red box says otherwise. Download ",
            link,
            ".",
        ),
        element("details", element("summary", "The definition"), element("pre", text(results.experiment.text))),
    )
