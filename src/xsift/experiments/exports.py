"""Results as data: a row for each number that is plotted or claimed (CSV), and for each single timing (Parquet)."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from xsift.experiments.measures import unit_of
from xsift.experiments.results import Results

__all__ = ["as_csv", "summaries", "write_timings"]

COLUMNS = (
    "figure",
    "series",
    "x",
    "measure",
    "unit",
    "median",
    "lower_quartile",
    "upper_quartile",
    "least",
    "most",
    "rounds",
)
TIMED = {"match": "match_rounds", "parse": "parse_rounds", "deliver": "deliver_rounds"}


def summaries(results: Results) -> Iterator[dict[str, Any]]:
    """A row for each figure, series, point and measure."""
    for figure in results.experiment.figures:
        for series in results.series(figure):
            for measure in figure.all_measures:
                for at, one in results.row(figure, measure, series.label).items():
                    values = (one.median, one.lower_quartile, one.upper_quartile, one.least, one.most, one.number)
                    x = results.x(figure, at)
                    row = (figure.id, series.label, x, measure, unit_of(measure), *values)
                    yield dict(zip(COLUMNS, row, strict=True))


def as_csv(results: Results) -> str:
    """The summaries as CSV text."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(summaries(results))
    return text.getvalue()


def write_timings(results: Results, path: Path) -> None:
    """Every single timing of the run as a Parquet file."""
    import pyarrow as pa  # here: its threads must not be there when workers are forked
    import pyarrow.parquet as pq

    columns: dict[str, list[Any]] = {
        name: [] for name in ("figure", "series", "x", "what", "round", "document", "seconds")
    }
    for (figure, position), measured in sorted(results.points.items()):
        x = next(p["x_measured"] for p in results.run["points"] if (p["figure"], p["position"]) == (figure, position))
        for label, record in measured.records.items():
            for what, key in TIMED.items():
                for number, round_ in enumerate(record[key]):
                    size = len(round_)
                    for name, value in zip(columns, (figure, label, str(x), what, number), strict=False):
                        columns[name] += [value] * size
                    columns["document"] += range(size)
                    columns["seconds"] += round_
    types = {"round": pa.int32(), "document": pa.int32(), "seconds": pa.float64()}
    table = pa.table({name: pa.array(values, types.get(name, pa.string())) for name, values in columns.items()})
    pq.write_table(table, path, compression="zstd")
