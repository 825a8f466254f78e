"""The report of a run: tables for the terminal, and files: HTML, CSV, Parquet."""

from __future__ import annotations

from pathlib import Path

from xsift.experiments.exports import as_csv, write_timings
from xsift.experiments.measures import titled, unit_of
from xsift.experiments.model import Figure
from xsift.experiments.page import page
from xsift.experiments.quantities import quantity
from xsift.experiments.results import DOES_NOT_HOLD, HOLDS, NOT_MEASURED, Results, Verdict, counted
from xsift.experiments.rows import Number, Row
from xsift.experiments.store import Store

__all__ = ["terminal", "write"]

MARKS = {HOLDS: "+", DOES_NOT_HOLD: "-"}


def write(store: Store) -> tuple[Results, Path]:
    """Writes the report's files into the folder of the run; gives the results and the HTML file's path."""
    results = Results.of(store)
    store.write("figures.csv", as_csv(results))
    write_timings(results, store.folder / "timings.parquet")
    return results, store.write("report.html", page(results))


def terminal(results: Results) -> str:
    """All figures as tables, with the verdicts below them."""
    lines = [f"{results.experiment.title}, scale {results.scale:g}", ""]
    if results.busy:
        lines += [f"The machine was busy (load up to {results.load:.1f}): trust ratios, not times.", ""]
    for reason, ids in results.reasons_left_out().items():
        were = "Figures {} were" if len(ids) > 1 else "Figure {} was"
        lines += [f"{were.format(', '.join(ids))} not measured: {reason}.", ""]
    for figure in results.experiment.figures:
        if not results.is_measured(figure):
            continue
        title = results.wording(figure, figure.title)
        lines += [f"{figure.id}  {title}{f'  ({figure.place})' if figure.place else ''}", ""]
        for measure in figure.measures:
            lines += [*_table(results, figure, measure), ""]
        for failure in results.failures(figure):
            lines += [f"  ! {results.wording(figure, failure.label)} at {failure.x}: {failure.reason}", ""]
        for label, reason in results.left_out(figure):
            lines += [f"  {results.wording(figure, label)}: not measured: {reason}", ""]
        for verdict in results.verdicts(figure):
            lines += [*_verdict(results, figure, verdict), ""]
    verdicts = [verdict for _, verdict in results.all_verdicts()]
    if verdicts:
        lines.append(counted(verdicts))
    return "\n".join(lines).rstrip()


def _table(results: Results, figure: Figure, measure: str) -> list[str]:
    unit = unit_of(measure)
    labels = [results.wording(figure, series.label) for series in results.series(figure)]
    rows = [[figure.vary.label, *labels]]
    for at in range(len(figure.vary.values)):
        cells = [results.shown(figure, measure, series.label).get(at) for series in results.series(figure)]
        rows.append([results.x_text(figure, at), *(quantity(cell.median, unit) if cell else "–" for cell in cells)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return [
        f"  {titled(measure, figure.show)}",
        lines[0],
        "  " + "  ".join("─" * width for width in widths),
        *lines[1:],
    ]


def _verdict(results: Results, figure: Figure, verdict: Verdict) -> list[str]:
    sure = f", {verdict.sure_text}" if verdict.sure_text else ""
    unknown = f": {verdict.reason}" if verdict.state == NOT_MEASURED else ""
    lines = [f"  {MARKS.get(verdict.state, '?')} {verdict.state}{sure}{unknown}: {verdict.claim.says}"]
    if verdict.without:
        lines.append(f"      {verdict.without}")
    if verdict.reason and not unknown:
        lines.append(f"      {verdict.reason}")
    lines += [f"      {expression} = {_value(results, figure, value)}" for expression, value in verdict.evidence]
    return lines


def _value(results: Results, figure: Figure, value: Number | Row) -> str:
    if isinstance(value, Number):
        return quantity(value.value, value.unit)
    return ", ".join(
        f"{quantity(number, value.unit)} at {results.x_text(figure, at)}"
        for at, number in sorted(value.points.items())
    )
