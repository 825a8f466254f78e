"""`xsift experiment`: runs the experiments of the papers, and ours, and reports on their claims."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from xsift.errors import XsiftError
from xsift.experiments.budget import Estimate
from xsift.experiments.comparing import compare
from xsift.experiments.definition import load, names
from xsift.experiments.errors import ExperimentError
from xsift.experiments.keeping import judge, keep, write_papers
from xsift.experiments.model import Experiment
from xsift.experiments.plan import Point
from xsift.experiments.programs import DTDS, YFILTER_HOME
from xsift.experiments.report import terminal, write
from xsift.experiments.results import Results
from xsift.experiments.runner import Progress
from xsift.experiments.runner import run as run_experiment
from xsift.experiments.settling import Unsettled
from xsift.experiments.store import Measured, Store

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the subcommand's arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    actions.add_parser("list", help="the experiments that there are")
    running = actions.add_parser("run", help="measure, and write the report")
    running.add_argument(
        "names", nargs="+", metavar="NAME", help="an experiment's name, or a path that ends in .toml"
    )
    running.add_argument(
        "--scale", type=float, default=1.0, help="multiplies subscriptions and documents (default 1)"
    )
    running.add_argument("--output", type=Path, metavar="DIR", help="where results go (default runs/NAME)")
    running.add_argument("--figures", nargs="+", default=[], metavar="ID", help="only these figures")
    running.add_argument(
        "--yfilter",
        type=Path,
        metavar="DIR",
        help=f"where YFilter 1.0 is, which is not part of xsift (default: ${YFILTER_HOME})",
    )
    running.add_argument(
        "--dtds",
        type=Path,
        metavar="DIR",
        help=f"where published DTDs are, for second workloads; they are not part of xsift (default: ${DTDS})",
    )
    running.add_argument(
        "--budget",
        type=_positive,
        metavar="MINUTES",
        help="leave out what does not fit into so many minutes, figures with the fewest verdicts a minute first",
    )
    running.add_argument(
        "--beside",
        type=Path,
        metavar="DIR",
        help="another run of the same (what `run` wrote), for what it found out about the workloads: saves time",
    )
    running.add_argument("--fresh", action="store_true", help="measure again what is already there")
    running.add_argument("--quiet", action="store_true", help="no progress, no tables")
    reporting = actions.add_parser("report", help="the report of a run once more, from what is stored")
    reporting.add_argument("folder", type=Path, metavar="DIR", help="what `run` wrote")
    keeping = actions.add_parser("keep", help="keep a run in the repository: results/, docs/reports/, docs/papers.md")
    keeping.add_argument("folders", nargs="+", type=Path, metavar="DIR", help="what `run` wrote")
    keeping.add_argument(
        "--add", action="store_true", help="add the figures of a run to what is kept, instead of replacing all of it"
    )
    judging = actions.add_parser("judge", help="what is kept once more, with the claims as they are defined now")
    judging.add_argument("names", nargs="+", metavar="NAME", help="as for `run`; results/NAME is of that experiment")
    for parser in (keeping, judging):
        parser.add_argument(
            "--again",
            type=Path,
            metavar="DIR",
            help="another run of the same (what `run` or `keep` wrote): where they differ, a verdict is open",
        )
    comparing = actions.add_parser("compare", help="which verdicts differ between two runs of an experiment")
    for name in ("one", "other"):
        comparing.add_argument(name, type=Path, metavar="DIR", help="what `run` or `keep` wrote (results/NAME)")
    papers = actions.add_parser("papers", help="docs/papers.md once more, from results/")
    for parser in (keeping, judging, papers):
        parser.add_argument("--root", type=Path, default=Path(), metavar="DIR", help="the repository (default: here)")


def run(arguments: argparse.Namespace) -> int:
    """Does what the arguments say; the exit code."""
    actions = {
        "list": _list,
        "run": _run,
        "report": _report,
        "keep": _keep,
        "judge": _judge,
        "compare": _compare,
        "papers": _papers,
    }
    return actions[arguments.action](arguments)


def _list(arguments: argparse.Namespace) -> int:
    broken = 0
    for name in names():
        try:
            experiment = load(name)
        except XsiftError as error:
            print(f"{name:<12} cannot be read: {error}\n")
            broken = 2
            continue
        measured = [figure for figure in experiment.figures if figure.measured_in == figure.id]
        points = sum(len(figure.vary.values) for figure in measured)
        claims = sum(len(figure.claims) for figure in experiment.figures)
        print(f"{name:<12} {experiment.title}")
        print(f"{'':<12} figures: {', '.join(figure.id for figure in experiment.figures)}")
        print(f"{'':<12} {points} points, {claims} claims, about {experiment.minutes:g} minutes at most\n")
    return broken


def _run(arguments: argparse.Namespace) -> int:
    experiments = [load(name) for name in arguments.names]
    if arguments.yfilter is not None:
        os.environ[YFILTER_HOME] = str(arguments.yfilter)
    if arguments.dtds is not None:
        os.environ[DTDS] = str(arguments.dtds)
    for experiment in experiments:
        folder = _folder(arguments, experiment, len(experiments))
        store = Store(folder)
        progress = Progress() if arguments.quiet else _Bar(experiment)
        try:
            run_experiment(
                experiment,
                store,
                scale=arguments.scale,
                figures=arguments.figures,
                fresh=arguments.fresh,
                budget=arguments.budget,
                beside=_beside(arguments, experiment, len(experiments)),
                progress=progress,
            )
        except KeyboardInterrupt:
            print(f"\ninterrupted; the same command goes on from here ({folder})", file=sys.stderr)
            return 130
        finally:
            progress.close()
        _show(store, arguments.quiet)
    return 0


def _positive(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


def _folder(arguments: argparse.Namespace, experiment: Experiment, number: int) -> Path:
    if arguments.output is None:
        return Path("runs") / experiment.name
    return _one_of(arguments.output, experiment, number)


def _beside(arguments: argparse.Namespace, experiment: Experiment, number: int) -> Store | None:
    """Where the run beside this one is. Raises ExperimentError if there is none."""
    if arguments.beside is None:
        return None
    store = Store(_one_of(arguments.beside, experiment, number))
    store.run()
    return store


def _one_of(given: Path, experiment: Experiment, number: int) -> Path:
    """The folder of an experiment: the one given, or one in it if there are several experiments."""
    return given if number == 1 else given / experiment.name


def _report(arguments: argparse.Namespace) -> int:
    _show(Store(arguments.folder), False)
    return 0


def _keep(arguments: argparse.Namespace) -> int:
    _check_again(arguments.again, arguments.folders)
    for path in keep(arguments.folders, arguments.root, arguments.again, arguments.add):
        print(path)
    return 0


def _check_again(again: Path | None, given: Sequence[Any]) -> None:
    if again and len(given) > 1:
        raise ExperimentError("one-run", "--again is another run of one experiment", hint="name the others apart")


def _judge(arguments: argparse.Namespace) -> int:
    _check_again(arguments.again, arguments.names)
    for path in judge([load(name) for name in arguments.names], arguments.root, arguments.again):
        print(path)
    return 0


def _compare(arguments: argparse.Namespace) -> int:
    comparison = compare(arguments.one, arguments.other)
    print("\n".join(comparison.lines()))
    return 1 if comparison.different else 0


def _papers(arguments: argparse.Namespace) -> int:
    print(write_papers(arguments.root))
    return 0


def _show(store: Store, quiet: bool) -> Results:
    results, path = write(store)
    if not quiet:
        print(terminal(results))
        print()
    print(path)
    return results


class _Bar(Progress):
    """The runner's progress: a bar over the points and what it is doing, or one line per point without a terminal."""

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self.bar: tqdm[Any] | None = None
        self.now = ""

    def start(self, estimate: Estimate) -> None:
        tqdm.monitor_interval = 0  # its thread must not be there when workers are forked
        size = shutil.get_terminal_size()  # tqdm's own look-up shows nothing where the size is not known
        layout = "{desc} {bar:16} {n_fmt}/{total_fmt} points, {elapsed}{postfix}"
        self.bar = tqdm(
            total=len(estimate.left),
            desc=self.experiment.name,
            bar_format=layout,
            ncols=size.columns,
            nrows=size.lines,
            file=sys.stderr,
            disable=not sys.stderr.isatty(),
        )

    def point(self, point: Point, estimate: Estimate) -> None:
        self.now = f"about {_minutes(estimate.seconds_left)} left; {_place(point)}"
        self.step("")

    def step(self, text: str) -> None:
        if self.bar is not None:
            self.bar.set_postfix_str(f"{self.now}; {text}" if text else self.now)

    def done(self, point: Point, measured: Measured, resumed: bool, estimate: Estimate) -> None:
        if self.bar is None or resumed:
            return
        for label, reason in measured.failures.items():
            self.bar.write(f"{_place(point)}: {label}: {reason}", file=sys.stderr)
        self.bar.update()
        if self.bar.disable:
            took, left = _minutes(measured.elapsed_seconds), _minutes(estimate.seconds_left)
            print(f"{self.experiment.name}: {_place(point)}: took {took}, about {left} left", file=sys.stderr)

    def settling(self, unsettled: Unsettled) -> None:
        self.now = f"a verdict is not settled: {unsettled.rounds} more rounds; {_place(unsettled.point)}"
        self.step("")
        if self.bar is not None and self.bar.disable:
            print(f"{self.experiment.name}: {self.now}", file=sys.stderr)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()


def _place(point: Point) -> str:
    """The figure, and the point of its axis as it is measured, which may be scaled."""
    x, vary = point.x_measured, point.figure.vary
    scaled = not isinstance(x, str) and x != point.x and not vary.labels
    return f"{point.figure.id}, {f'{vary.label} {x:,.10g}' if scaled else point.text}"


def _minutes(seconds: float) -> str:
    return f"{round(seconds) // 60}:{round(seconds) % 60:02d}"
