"""Keeping: the results that stay in the repository, and the pages made of them.

    results/NAME/figures.csv     medians and spreads, as plotted
    results/NAME/points.json.xz  the rounds of every number (archive.py)
    results/NAME/verdicts.json   each claim with its verdict, how sure it is and its reason; the paper's headlines
    results/NAME/again.json      the verdicts of another run, if there was one; its rounds are in again.json.xz
    results/NAME/machine.json    what it was measured on, when, and what was left out
    docs/reports/NAME.html       the report
    docs/papers.md               all papers on a page (papers.py)

`xsift experiment keep runs/NAME` writes them; with `--add`, figures that were measured later join what is kept.
Single timings stay in the folder of the run. `xsift experiment judge NAME` writes them once more from the rounds that
are kept, when a claim or a reason was edited; with `--again`, when another run was made.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from xsift.experiments.archive import FILE, Archive, archive, packed, packed_of, with_figures
from xsift.experiments.comparing import states, verdicts_of
from xsift.experiments.definition import read
from xsift.experiments.errors import ExperimentError
from xsift.experiments.exports import as_csv
from xsift.experiments.model import Experiment, Figure, Headline
from xsift.experiments.page import page
from xsift.experiments.papers import papers_page
from xsift.experiments.results import NOT_MEASURED, Results, Source, Verdict
from xsift.experiments.store import Store

AGAIN_FILE = "again.json.xz"

__all__ = ["judge", "keep", "write_papers"]


def keep(folders: Sequence[Path], root: Path, again: Path | None = None, add: bool = False) -> list[Path]:
    """Writes what is kept of some runs below a repository's root; gives the paths.

    `again` is another run of the same experiment. Its verdicts are kept too, also when the first is kept anew.
    With `add` the figures of a run join those that are kept, instead of taking the place of all of them.
    """
    if not (root / "docs").is_dir():
        raise ExperimentError("no-repository", f"{str(root)!r} has no folder docs", hint="--root: the repository's")
    written = []
    for folder in folders:
        run = Results.of(Store(folder))
        experiment = read(run.experiment.text, run.experiment.name)  # with the figures that this run does not have
        kept = root / "results" / experiment.name
        content, others = packed(run), packed_of(again) if again else _read(kept / AGAIN_FILE)
        if add:
            content = with_figures(_read_kept(kept), content)
        other = _again(kept, again, others, experiment)
        results = _results(Archive(content, experiment), other)
        if again:
            _check_again(results, other, again, folder)
        kept.mkdir(parents=True, exist_ok=True)
        (kept / FILE).write_bytes(content)
        written += [kept / FILE, *_write_again(others, kept), *_write(results, other, kept, root)]
    return [*written, write_papers(root)]


def judge(experiments: Sequence[Experiment], root: Path, again: Path | None = None) -> list[Path]:
    """Writes what is kept of some experiments once more, judged as they are defined now; gives the paths.

    `again` is another run, which takes the place of the one that each was compared with until now.
    """
    written = []
    for experiment in experiments:
        kept = root / "results" / experiment.name
        others = packed_of(again) if again else _read(kept / AGAIN_FILE)
        other = _again(kept, again, others, experiment)
        results = _results(archive(kept, experiment), other)
        if again:
            _check_again(results, other, again, kept)
            written += _write_again(others, kept)
        written += _write(results, other, kept, root)
    return [*written, write_papers(root)]


def _check_again(results: Results, other: dict[str, Any], again: Path, folder: Path) -> None:
    if not _compared(results, other):
        raise ExperimentError("other-experiment", f"{str(again)!r} has no claim in common with {str(folder)!r}")


def _write_again(others: bytes, kept: Path) -> list[Path]:
    path = kept / AGAIN_FILE
    path.unlink(missing_ok=True)  # of the other run there may be verdicts alone
    if not others:
        return []
    path.write_bytes(others)
    return [path]


def _results(source: Source, other: dict[str, Any]) -> Results:
    return Results.of(source, {(figure, says): verdict for figure, says, verdict in other.get("verdicts", [])})


def _write(results: Results, other: dict[str, Any], kept: Path, root: Path) -> list[Path]:
    contents = {
        kept / "figures.csv": as_csv(results),
        kept / "verdicts.json": _json({**_verdicts(results), "again": _compared(results, other)}),
        kept / "machine.json": _json(_machine(results)),
        root / "docs" / "reports" / f"{kept.name}.html": page(results),
        **({kept / "again.json": _json(other)} if other else {}),
    }
    for path, content in contents.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return list(contents)


def write_papers(root: Path) -> Path:
    """Writes the page of all papers from what is kept."""
    path = root / "docs" / "papers.md"
    path.write_text(papers_page(root / "results"), encoding="utf-8")
    return path


def _again(kept: Path, folder: Path | None, content: bytes, experiment: Experiment) -> dict[str, Any]:
    """The verdicts of another run, of a folder or kept before. Its rounds, if there are, are judged as ours are."""
    path = kept / "again.json"
    if folder:
        other = {**_measured(folder), "verdicts": [] if content else _listed(verdicts_of(folder))}
    else:
        other = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if content:
        other["verdicts"] = _listed(states(Results.of(Archive(content, experiment))))
    return other


def _read_kept(kept: Path) -> bytes:
    """The rounds that are kept. Raises ExperimentError if there are none."""
    content = _read(kept / FILE)
    if not content:
        hint = "keep it without --add first"
        raise ExperimentError("not-kept", "there is nothing to add to", place=str(kept / FILE), hint=hint)
    return content


def _read(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def _listed(verdicts: dict[tuple[str, str], str]) -> list[list[str]]:
    return [[figure, says, verdict] for (figure, says), verdict in verdicts.items()]


def _measured(folder: Path) -> dict[str, str]:
    """When a run was made, and with which code: a folder that `run` wrote, or that `keep` did."""
    if (folder / "machine.json").exists():
        machine = json.loads((folder / "machine.json").read_text(encoding="utf-8"))
        return {"measured": machine["measured"], "commit": machine.get("commit", "")}
    run = Store(folder).run()
    return {"measured": run["written_at"][:10], "commit": run["machine"].get("commit", "")}


def _compared(results: Results, other: dict[str, Any]) -> dict[str, Any]:
    """When the other run was made, and how many claims both judged; nothing if there was none."""
    judged = {
        (figure.id, verdict.claim.says) for figure, verdict in results.all_verdicts() if verdict.state != NOT_MEASURED
    }
    both = judged & results.another.keys()
    return {"measured": other["measured"], "commit": other["commit"], "claims": len(both)} if both else {}


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def _machine(results: Results) -> dict[str, Any]:
    run = results.run
    return {
        **run["machine"],
        "measured": run["written_at"][:10],
        "scale": run["scale"],
        "highest_load": results.load,
        "was_busy": results.busy,
        "missing": run.get("missing", {}),
        "left_out": results.figures_left_out(),
        **({"added": run["added"]} if run.get("added") else {}),
    }


def _verdicts(results: Results) -> dict[str, Any]:
    experiment = results.experiment
    figures = {figure.id: figure for figure in experiment.figures}
    headlines = [
        _headline(results, figures[one.figure], one) for one in experiment.headlines if one.figure in figures
    ]
    return {
        "title": experiment.title,
        "paper": experiment.paper,
        "second": experiment.second.title if experiment.second else "",
        "headlines": headlines,
        "claims": [_claim(figure, verdict) for figure, verdict in results.all_verdicts()],
    }


def _headline(results: Results, figure: Figure, headline: Headline) -> dict[str, str]:
    known = figure.measured_in not in results.figures_left_out()
    return {
        "says": headline.says,
        "figure": figure.id,
        "paper": headline.paper,
        "ours": results.filled(figure, headline.ours) if known else NOT_MEASURED,
        "why": results.filled(figure, headline.why) if known else "",
    }


def _claim(figure: Figure, verdict: Verdict) -> dict[str, Any]:
    return {
        "figure": figure.id,
        "second_of": figure.second_of,
        "says": verdict.claim.says,
        "place": verdict.claim.place,
        "verdict": verdict.state,
        "share": round(verdict.sureness.share, 3),
        "rounds": verdict.sureness.rounds,
        "reason": verdict.reason,
        "without": verdict.without,
        "runs": verdict.runs,
    }
