"""The peer YFilter 1.0: without it; with a stand-in for Java that speaks as its driver does; and itself, if here."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.experiments.conftest import FIGURE, tiny
from xsift.cli import main
from xsift.experiments import programs, yfilter
from xsift.experiments.definition import PEERS as NAMES
from xsift.experiments.peers import PEERS
from xsift.experiments.plan import make_plan
from xsift.experiments.report import terminal
from xsift.experiments.results import NOT_MEASURED, Results
from xsift.experiments.subjects import Clock

Measure = Callable[[str], Results]

BESIDE = (
    FIGURE
    + """
[[figure.series]]
label = "Y 1.0"
peer = "yfilter-1.0"
[[figure.claim]]
says = "Never more than a day."
check = 'always(y("Y") < 86_400 * y("Y 1.0"))'
"""
)

# What YFilterDriver.java does, with libxml2 instead of YFilter. A fault to show is put where it says so.
STAND_IN = """#!{python}
import sys
from lxml import etree
from pathlib import Path

assert sys.argv[1].startswith("-Xmx") and "yfilter.jar" in sys.argv[3] and sys.argv[4].endswith("YFilterDriver.java")
queries = [etree.XPath(line) for line in Path(sys.argv[5]).read_text().splitlines()]
documents = [etree.fromstring(Path(sys.argv[6], f"{{n}}.xml").read_bytes()) for n in range(3)]
print("built", 5_000_000_000, 4_000_000_000, len(queries), flush=True)
for line in sys.stdin:
    what, number = line.split()
    matching = [str(at) for at, query in enumerate(queries) if query(documents[int(number)])]
    answer = ["2000000", "1000000", *(matching if what == "match" else [])]
    {fault}
    print(*answer, flush=True)
"""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A folder with jars that are none, and a Java that is none."""
    for jar in programs.JARS:
        (tmp_path / jar).touch()
    monkeypatch.setenv(programs.YFILTER_HOME, str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    def install(fault: str = "") -> None:
        java = tmp_path / "java"
        java.write_text(STAND_IN.format(python=sys.executable, fault=fault))
        java.chmod(0o755)

    return install


def test_without_it_the_series_is_not_measured(measured: Measure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(programs.YFILTER_HOME, raising=False)
    results = measured(BESIDE)
    (figure,) = results.experiment.figures
    assert [series.label for series in results.series(figure)] == ["R", "Y"]
    ((label, reason),) = results.left_out(figure)
    assert label == "Y 1.0"
    assert "--yfilter" in reason
    assert [verdict.state for verdict in results.verdicts(figure)] == [NOT_MEASURED]
    assert "Y 1.0: not measured: YFilter 1.0 is not part of xsift" in terminal(results)
    assert results.record(figure, "Y", 0)["match_rounds"]


def test_a_folder_that_is_the_wrong_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "yfilter.jar").touch()
    monkeypatch.setenv(programs.YFILTER_HOME, str(tmp_path))
    assert "no java_cup.jar, dtdparser113.jar" in programs.why_missing(programs.YFILTER)
    for jar in programs.JARS:
        (tmp_path / jar).touch()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert "needs a JDK" in programs.why_missing(programs.YFILTER)
    assert programs.why_missing("lxml-loop") == ""


def test_its_own_clock_counts(measured: Measure, stand_in: Callable[[str], None]) -> None:
    stand_in("")
    results = measured(BESIDE)
    (figure,) = results.experiment.figures
    assert results.failures(figure) == []
    record = results.record(figure, "Y 1.0", 1)
    assert set(record["build_seconds"]) == {5.0}
    assert set(record["build_cpu_seconds"]) == {4.0}
    assert record["match_rounds"] == [[0.002] * 3] * 3
    assert record["match_cpu_rounds"] == pytest.approx([0.001] * 3)
    assert record["parse_rounds"] == [[0.002] * 3] * 3
    assert record["resident_bytes"] is None
    assert record["matches"] == results.record(figure, "R", 1)["matches"]
    assert all(seconds != 0.002 for seconds in record["deliver_rounds"][0])  # that is done here


FAULTS = [
    ("answer = answer[:2] + answer[3:]", "wrong answer: it misses"),
    ("print('failed boom at somewhere', flush=True)", "YFilter 1.0 failed: boom at somewhere"),
    ("sys.exit('no more heap')", "YFilter 1.0 failed: no more heap"),
]


@pytest.mark.parametrize(("fault", "reason"), FAULTS)
def test_a_fault_is_reported_and_not_timed(
    measured: Measure, stand_in: Callable[[str], None], fault: str, reason: str
) -> None:
    stand_in(fault)
    results = measured(BESIDE)
    (figure,) = results.experiment.figures
    failures = results.failures(figure)
    assert {failure.label for failure in failures} == {"Y 1.0"}
    assert reason in failures[0].reason
    assert results.record(figure, "Y", 0)["match_rounds"]


def test_expressions_that_it_does_not_take(measured: Measure, stand_in: Callable[[str], None]) -> None:
    stand_in("")
    results = measured(BESIDE.replace('peer = "yfilter-1.0"', 'peer = "yfilter-1.0"\nordered = true'))
    assert "no ordered matching" in results.failures(results.experiment.figures[0])[0].reason
    twig = 'workload = { subscriptions = { texts = ["/a[b][c][d][e][f]/g", "/a[@x][@y]/b"] } }\n'
    results = measured(BESIDE.replace("additions = 0\n", twig))
    assert "5 paths a query at most, here are up to 6" in results.failures(results.experiment.figures[0])[0].reason


def test_it_warms_up_until_it_gets_no_faster(
    stand_in: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(yfilter, "SETTLED", 2)
    taken = iter([9, 5, 4, 4, 3, 3, 3, 100])
    asked = []

    class Timed(yfilter.AuthorsYFilter):
        def __init__(self) -> None:
            self.prepared = type("", (), {"documents": [0]})()

        def match(self, document: int) -> list[str]:
            asked.append(next(taken))
            self._clock = Clock(0.0, asked[-1])
            return []

        def parse(self, document: int) -> None:
            self._clock = Clock(0.0, 0.0)

    Timed()._warm_up()
    assert asked == [9, 5, 4, 4, 3, 3, 3]


def test_another_program_is_measured_again(stand_in: Callable[[str], None], tmp_path: Path) -> None:
    stand_in("")
    first = make_plan(tiny(BESIDE)).points[0].key
    assert make_plan(tiny(BESIDE)).points[0].key == first
    (tmp_path / "yfilter.jar").write_text("another")
    assert make_plan(tiny(BESIDE)).points[0].key != first


def test_the_option_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(programs.YFILTER_HOME, "")  # so that it is put back
    definition = tmp_path / "own.toml"
    definition.write_text(tiny().text)
    arguments = ["experiment", "run", str(definition), "--output", str(tmp_path / "out"), "--quiet"]
    assert main([*arguments, "--yfilter", str(tmp_path / "elsewhere")]) == 0
    assert os.environ[programs.YFILTER_HOME] == str(tmp_path / "elsewhere")


def test_every_peer_that_a_definition_may_name_is_there() -> None:
    assert set(NAMES) == set(PEERS)


@pytest.mark.skipif(bool(programs.why_missing(programs.YFILTER)), reason="YFilter 1.0 is not here: XSIFT_YFILTER")
def test_the_real_one_agrees(measured: Measure) -> None:
    texts = (
        'subscriptions = { texts = ["/a/b", "//c", "/a[b]/d", "/a[b/c][d]/b", "/x", "/*/*/c", "//b[c]", "/a//c"] }'
    )
    results = measured(BESIDE.replace("additions = 0\n", f"workload = {{ {texts} }}\n"))
    (figure,) = results.experiment.figures
    assert results.failures(figure) == []
    assert results.record(figure, "Y 1.0", 1)["matches"] == results.record(figure, "R", 1)["matches"]
