"""What is kept in the repository: results, reports, and the page of all papers, in step with each other."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from tests.experiments.conftest import FIGURE, tiny
from xsift.cli import main
from xsift.experiments.archive import FILE, archive
from xsift.experiments.definition import load, names
from xsift.experiments.errors import ExperimentError
from xsift.experiments.exports import summaries
from xsift.experiments.looks import COLOURS, looks
from xsift.experiments.papers import papers_page
from xsift.experiments.results import Results
from xsift.experiments.runner import run
from xsift.experiments.store import Store

ROOT = Path(__file__).parents[2]

HEADLINE = """
[[headline]]
says = "It is the smallest | of all."
figure = "1"
paper = "3 patterns"
ours = '{patterns("Y", first)} to {patterns("Y", last)} patterns, {y("Y", last) / y("Y", last)} times'
why = "Its documents are not ours."
"""
CLAIMS = """
[[figure.claim]]
says = "There are patterns."
check = 'always(patterns("Y") > 0)'
[[figure.claim]]
says = "There are none."
check = 'always(patterns("Y") == 0)'
reason = 'There are {patterns("Y")}.'
"""


def test_a_run_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tiny(FIGURE + CLAIMS + HEADLINE), Store(tmp_path / "run"))
    assert main(["experiment", "keep", str(tmp_path / "run"), "--root", str(tmp_path)]) == 2
    assert "no folder docs" in capsys.readouterr().err
    (tmp_path / "docs").mkdir()
    assert main(["experiment", "keep", str(tmp_path / "run"), "--root", str(tmp_path)]) == 0
    kept = json.loads((tmp_path / "results" / "tiny" / "verdicts.json").read_text(encoding="utf-8"))
    assert [claim["verdict"] for claim in kept["claims"]] == ["holds", "does not hold"]
    assert kept["headlines"][0]["ours"] == "3.00 to 6.00 patterns, 1.00 times"
    page = (tmp_path / "docs" / "papers.md").read_text(encoding="utf-8")
    assert page == papers_page(tmp_path / "results")
    assert "| [Tiny](#tiny) | 2 | 1 | 1 | 0 | 0 |" in page
    assert "| It is the smallest \\| of all. | 3 patterns | 3.00 to 6.00 patterns, 1.00 times |" in page
    assert "| There are none. | 1 | [does not hold](#tiny-1) |" in page
    assert '- <a id="tiny-1"></a>**1**: "There are none." There are 3.00 to 6.00.' in page
    assert (tmp_path / "docs" / "reports" / "tiny.html").exists()
    assert json.loads((tmp_path / "results" / "tiny" / "machine.json").read_text(encoding="utf-8"))["scale"] == 1
    (tmp_path / "docs" / "papers.md").unlink()
    assert main(["experiment", "papers", "--root", str(tmp_path)]) == 0
    assert (tmp_path / "docs" / "papers.md").read_text(encoding="utf-8") == page


TIMES = """
[[figure.claim]]
says = "Y is faster."
check = 'always(y("Y") < y("R"))'
[[figure.claim]]
says = "Y is as fast as itself."
check = 'y("Y", 4) <= y("Y", 8)'
reason = 'It takes {y("Y")}.'
"""


def test_what_is_kept_is_judged_as_the_run_is(tmp_path: Path) -> None:
    definition = tmp_path / "tiny.toml"
    definition.write_text(tiny(FIGURE + CLAIMS + TIMES + HEADLINE).text, encoding="utf-8")
    run(load(str(definition)), Store(tmp_path / "run"))
    (tmp_path / "docs").mkdir()
    root = ["--root", str(tmp_path)]
    assert main(["experiment", "judge", str(definition), *root]) == 2  # nothing is kept yet
    assert main(["experiment", "keep", str(tmp_path / "run"), *root]) == 0
    folder = tmp_path / "results" / "tiny"
    of_run, of_kept = (
        Results.of(source) for source in (Store(tmp_path / "run"), archive(folder, load(str(definition))))
    )
    for (_, one), (_, other) in zip(of_run.all_verdicts(), of_kept.all_verdicts(), strict=True):
        assert (one.state, one.sureness, one.reason) == (other.state, other.sureness, other.reason)
    assert list(summaries(of_run)) == list(summaries(of_kept))
    files = [path for path in tmp_path.rglob("*") if path.is_file() and tmp_path / "run" not in path.parents]
    before = {path: path.read_bytes() for path in files}
    assert main(["experiment", "judge", str(definition), *root]) == 0
    assert {path: path.read_bytes() for path in files} == before


def test_a_claim_that_was_edited_is_judged_from_what_is_kept(tmp_path: Path) -> None:
    definition = tmp_path / "tiny.toml"
    definition.write_text(tiny(FIGURE + CLAIMS).text, encoding="utf-8")
    run(load(str(definition)), Store(tmp_path / "run"))
    (tmp_path / "docs").mkdir()
    root = ["--root", str(tmp_path)]
    assert main(["experiment", "keep", str(tmp_path / "run"), *root]) == 0
    edited = CLAIMS.replace("== 0", "< 100").replace("There are none.", "There are few.")
    definition.write_text(tiny(FIGURE.replace("[4, 8]", "[4, 6]") + edited).text, encoding="utf-8")
    assert main(["experiment", "judge", str(definition), *root]) == 0
    page = (tmp_path / "docs" / "papers.md").read_text(encoding="utf-8")
    assert "| There are few. | 1 | not measured |" in page  # 6 was not
    definition.write_text(tiny(FIGURE + edited).text, encoding="utf-8")
    assert main(["experiment", "judge", str(definition), *root]) == 0
    page = (tmp_path / "docs" / "papers.md").read_text(encoding="utf-8")
    assert "| There are few. | 1 | holds |" in page
    assert "There are none" not in page


TWO = FIGURE + CLAIMS + (FIGURE + CLAIMS).replace('id = "1"', 'id = "2"').replace("[4, 8]", "[3, 5]")


def test_figures_that_were_measured_later_are_added(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def kept_after(run_name: str, *options: str) -> dict[str, str]:
        assert main(["experiment", "keep", str(tmp_path / run_name), "--root", str(tmp_path), *options]) == 0
        claims = json.loads((tmp_path / "results" / "tiny" / "verdicts.json").read_text(encoding="utf-8"))["claims"]
        return {claim["figure"]: claim["verdict"] for claim in claims if claim["says"] == "There are patterns."}

    (tmp_path / "docs").mkdir()
    run(tiny(TWO), Store(tmp_path / "first"), figures=["1"])
    run(tiny(TWO), Store(tmp_path / "second"), figures=["2"])
    assert main(["experiment", "keep", str(tmp_path / "second"), "--root", str(tmp_path), "--add"]) == 2
    assert "nothing to add to" in capsys.readouterr().err
    assert kept_after("first") == {"1": "holds"}
    assert kept_after("second", "--add") == {"1": "holds", "2": "holds"}
    numbers = (tmp_path / "results" / "tiny" / "figures.csv").read_text(encoding="utf-8")
    assert {row["figure"] for row in csv.DictReader(numbers.splitlines())} == {"1", "2"}
    machine = json.loads((tmp_path / "results" / "tiny" / "machine.json").read_text(encoding="utf-8"))
    assert [note["figures"] for note in machine["added"]] == [["2"]]
    assert f"; 2 on {machine['measured']}" in (tmp_path / "docs" / "papers.md").read_text(encoding="utf-8")
    assert f"; 2 on {machine['measured']}" in (tmp_path / "docs" / "reports" / "tiny.html").read_text(
        encoding="utf-8"
    )
    assert kept_after("second", "--add") == {"1": "holds", "2": "holds"}  # in the place of what was added before
    machine = json.loads((tmp_path / "results" / "tiny" / "machine.json").read_text(encoding="utf-8"))
    assert [note["figures"] for note in machine["added"]] == [["2"]]
    assert kept_after("first") == {"1": "holds"}


def test_only_a_run_of_the_same_kind_is_added(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "docs").mkdir()
    run(tiny(TWO), Store(tmp_path / "first"), figures=["1"])
    run(tiny(TWO), Store(tmp_path / "small"), figures=["2"], scale=0.5)
    assert main(["experiment", "keep", str(tmp_path / "first"), "--root", str(tmp_path)]) == 0
    assert main(["experiment", "keep", str(tmp_path / "small"), "--root", str(tmp_path), "--add"]) == 2
    assert "its scale is 0.5, not 1.0" in capsys.readouterr().err


def test_a_headline_names_a_figure_of_the_file() -> None:
    with pytest.raises(ExperimentError, match="there is no figure '7'"):
        tiny(FIGURE + HEADLINE.replace('figure = "1"', 'figure = "7"'))
    with pytest.raises(ExperimentError, match="no series is called 'Z'"):
        tiny(FIGURE + HEADLINE.replace('"Y"', '"Z"'))
    with pytest.raises(ExperimentError, match="neither a number nor a row"):
        tiny(FIGURE + CLAIMS.replace('{patterns("Y")}', '{patterns("Y", first) > 1}'))


def test_a_claim_that_fails_on_the_second_workload_alone_has_its_reason(tmp_path: Path) -> None:
    run(tiny(FIGURE + CLAIMS + HEADLINE), Store(tmp_path / "run"))
    (tmp_path / "docs").mkdir()
    assert main(["experiment", "keep", str(tmp_path / "run"), "--root", str(tmp_path)]) == 0
    path = tmp_path / "results" / "tiny" / "verdicts.json"
    kept = json.loads(path.read_text(encoding="utf-8"))
    holds, fails = kept["claims"]
    kept["claims"] = [holds, {**fails, "says": holds["says"], "figure": "1-other", "second_of": "1"}]
    path.write_text(json.dumps(kept), encoding="utf-8")
    kept["second"] = "another"
    path.write_text(json.dumps(kept), encoding="utf-8")
    page = papers_page(tmp_path / "results")
    assert "| There are patterns. | 1 | holds | [does not hold](#tiny-1) |" in page
    assert '- <a id="tiny-1"></a>**1**: "There are patterns." On another: There are 3.00 to 6.00.' in page


def test_a_reason_that_several_claims_of_a_figure_have_is_said_once(tmp_path: Path) -> None:
    """Under the table, whose columns would be narrow and tall with it; in lines that begin no other item."""
    run(tiny(FIGURE + CLAIMS + HEADLINE), Store(tmp_path / "run"))
    (tmp_path / "docs").mkdir()
    assert main(["experiment", "keep", str(tmp_path / "run"), "--root", str(tmp_path)]) == 0
    path = tmp_path / "results" / "tiny" / "verdicts.json"
    kept = json.loads(path.read_text(encoding="utf-8"))
    holds, fails = kept["claims"]
    fails["reason"] = f"{'x' * 88} - `a long line of code is not broken`"
    kept["claims"] = [holds, fails, {**fails, "says": "Nor are there any more."}, {**fails, "figure": "2"}]
    path.write_text(json.dumps(kept), encoding="utf-8")
    page = papers_page(tmp_path / "results")
    assert page.count(fails["reason"].partition(" ")[0]) == 2
    assert '**1**: "There are none." "Nor are there any more."\n' in page
    assert "\n  `a long line of code is not broken`\n" in page
    assert "| Nor are there any more. | 1 | [does not hold](#tiny-1) |" in page
    links = set(re.findall(r"\(#([^)]*)\)", page))
    assert {"tiny-1", "tiny-2"} < links == links & set(re.findall(r'<a id="([^"]*)"></a>', page))


def test_the_page_of_the_papers_is_in_step_with_what_is_kept() -> None:
    assert (ROOT / "docs" / "papers.md").read_text(encoding="utf-8") == papers_page(ROOT / "results")


@pytest.mark.parametrize("name", names())
def test_what_is_kept_is_of_the_definition_that_there_is(name: str) -> None:
    """A claim that was reworded or added since has to be judged: `xsift experiment keep` does that."""
    folder = ROOT / "results" / name
    if not folder.is_dir():
        pytest.skip("nothing is kept of it")
    kept = json.loads((folder / "verdicts.json").read_text(encoding="utf-8"))
    experiment = load(name)
    stated = [(figure.id, claim.says) for figure in experiment.figures for claim in figure.claims]
    assert [(claim["figure"], claim["says"]) for claim in kept["claims"]] == stated
    with open(folder / "figures.csv", encoding="utf-8", newline="") as lines:
        measured = {row["figure"] for row in csv.DictReader(lines)}
    assert measured <= {figure.id for figure in experiment.figures}
    assert (ROOT / "docs" / "reports" / f"{name}.html").is_file()


@pytest.mark.parametrize("name", names())
def test_what_is_kept_is_judged_by_the_claims_that_there_are(name: str) -> None:
    """A check or a reason that was edited since has to be judged again: `xsift experiment judge` does that."""
    folder = ROOT / "results" / name
    if not (folder / FILE).is_file():
        pytest.skip("no rounds are kept of it")
    kept = json.loads((folder / "verdicts.json").read_text(encoding="utf-8"))["claims"]
    again = folder / "again.json"
    other = json.loads(again.read_text(encoding="utf-8"))["verdicts"] if again.is_file() else []
    results = Results.of(archive(folder, load(name)), {(figure, says): verdict for figure, says, verdict in other})
    for claim, (_, verdict) in zip(kept, results.all_verdicts(), strict=True):
        assert (claim["verdict"], claim["reason"]) == (verdict.state, verdict.reason), claim["says"]


def test_every_look_is_one_series_own() -> None:
    plots = [[f"{engine}, {size}k" for engine in "ABCDEFG"] for size in range(12)] + [["A, 0k", "G, 11k"]]
    given = looks(plots)
    assert len(set(given.values())) == len(given) == 7 * 12
    for plot in plots:
        assert len({given[label].colour for label in plot}) == len(plot)
    many = looks([[str(number) for number in range(COLOURS + 3)]])
    assert len(set(many.values())) == COLOURS + 3


@pytest.mark.parametrize("name", names())
def test_no_two_series_of_a_definition_look_alike(name: str) -> None:
    given = looks([[one.label for one in figure.series] for figure in load(name).figures])
    assert len(set(given.values())) == len(given)
    for figure in load(name).figures:
        if len(figure.series) <= COLOURS:
            assert len({given[one.label].colour for one in figure.series}) == len(figure.series), figure.id


def test_reasons_of_our_definitions_are_filled_with_numbers_that_are_there() -> None:
    """A reason names measures that its figure stores: no dash is left in what is kept."""
    for path in sorted((ROOT / "results").glob("*/verdicts.json")):
        for claim in json.loads(path.read_text(encoding="utf-8"))["claims"]:
            if claim["verdict"] in ("does not hold", "open"):
                assert not re.search(r"(?<!\w)–(?!\w)", claim["reason"]), (path.parent.name, claim["says"])


def test_two_runs_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tiny(FIGURE + CLAIMS), Store(tmp_path / "one"))
    run(tiny(FIGURE + CLAIMS.replace("== 0", "< 100")), Store(tmp_path / "other"))
    (tmp_path / "docs").mkdir()
    assert main(["experiment", "keep", str(tmp_path / "one"), "--root", str(tmp_path)]) == 0
    kept = str(tmp_path / "results" / "tiny")
    capsys.readouterr()
    assert main(["experiment", "compare", str(tmp_path / "one"), kept]) == 0
    assert capsys.readouterr().out == "2 verdicts the same, 0 different, 0 in one run only\n"
    assert main(["experiment", "compare", kept, str(tmp_path / "other")]) == 1
    shown = capsys.readouterr().out.splitlines()
    assert shown[:2] == ["1: There are none.", "    does not hold / holds"]
    assert main(["experiment", "compare", kept, str(tmp_path / "nowhere")]) == 2


MORE = """
[[figure.claim]]
says = "They match."
check = 'always(matches("Y") > 0)'
"""


def without_patterns(folder: Path) -> str:
    """Makes of a run another, in which there are no patterns."""
    for path in (folder / "points").iterdir():
        point = json.loads(path.read_text(encoding="utf-8"))
        for record in point["records"].values():
            record["patterns"] = 0
        path.write_text(json.dumps(point), encoding="utf-8")
    return str(folder)


def test_a_verdict_that_another_run_does_not_share_is_open(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    definition = tmp_path / "tiny.toml"
    definition.write_text(tiny(FIGURE + CLAIMS + MORE).text, encoding="utf-8")
    for folder in ("one", "other"):
        run(load(str(definition)), Store(tmp_path / folder))
    (tmp_path / "docs").mkdir()
    one, other, root = str(tmp_path / "one"), without_patterns(tmp_path / "other"), ["--root", str(tmp_path)]
    assert main(["experiment", "keep", one, "--again", other, *root]) == 0
    path = tmp_path / "results" / "tiny" / "verdicts.json"
    kept = json.loads(path.read_text(encoding="utf-8"))
    assert [claim["verdict"] for claim in kept["claims"]] == ["open", "open", "holds"]
    assert kept["again"]["claims"] == 3
    said = "| [**open**](#tiny-1) (does not hold in one run, holds in another) |"
    page = (tmp_path / "docs" / "papers.md").read_text(encoding="utf-8")
    assert said in page
    assert "There are 3.00 to 6.00." in page
    assert "judged 3 of the claims, 1 as here; the others are open." in " ".join(page.split())
    report = (tmp_path / "docs" / "reports" / "tiny.html").read_text(encoding="utf-8")
    assert "does not hold in one run, holds in another" in report
    assert main(["experiment", "keep", one, *root]) == 0  # the other run is remembered
    assert json.loads(path.read_text(encoding="utf-8")) == kept
    definition.write_text(tiny(FIGURE + CLAIMS.replace("== 0", ">= 0") + MORE).text, encoding="utf-8")
    assert main(["experiment", "judge", str(definition), *root]) == 0  # both runs are judged by the new claim
    assert [claim["verdict"] for claim in json.loads(path.read_text())["claims"]] == ["open", "holds", "holds"]
    assert main(["experiment", "keep", one, "--again", one, *root]) == 0
    assert [claim["verdict"] for claim in json.loads(path.read_text())["claims"]] == [
        "holds",
        "does not hold",
        "holds",
    ]
    assert "judged 3 of the claims, all of them as here." in " ".join(
        (tmp_path / "docs" / "papers.md").read_text(encoding="utf-8").split()
    )


def test_another_run_may_be_made_later(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is kept stays as it is, also when the folder of its run is gone."""
    definition = tmp_path / "tiny.toml"
    definition.write_text(tiny(FIGURE + CLAIMS + MORE).text, encoding="utf-8")
    for folder in ("one", "other"):
        run(load(str(definition)), Store(tmp_path / folder))
    (tmp_path / "docs").mkdir()
    other, root = without_patterns(tmp_path / "other"), ["--root", str(tmp_path)]
    assert main(["experiment", "keep", str(tmp_path / "one"), "--again", other, *root]) == 0
    wanted = {path.name: path.read_bytes() for path in (tmp_path / "results" / "tiny").iterdir()}
    assert main(["experiment", "keep", str(tmp_path / "one"), "--again", str(tmp_path / "one"), *root]) == 0
    (tmp_path / "one").rename(tmp_path / "gone")
    assert main(["experiment", "judge", str(definition), "--again", other, *root]) == 0
    assert {path.name: path.read_bytes() for path in (tmp_path / "results" / "tiny").iterdir()} == wanted
    assert main(["experiment", "judge", str(definition), "peers", "--again", other, *root]) == 2
    assert "--again is another run of one experiment" in capsys.readouterr().err


def test_another_run_is_one_of_the_same_experiment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one", "another"):
        definition = tmp_path / f"{name}.toml"
        definition.write_text(tiny(FIGURE + CLAIMS).text, encoding="utf-8")
        run(load(str(definition)), Store(tmp_path / name))
    (tmp_path / "docs").mkdir()
    one, another, root = str(tmp_path / "one"), str(tmp_path / "another"), ["--root", str(tmp_path)]
    assert main(["experiment", "keep", one, one, "--again", one, *root]) == 2
    assert "--again is another run of one experiment" in capsys.readouterr().err
    assert main(["experiment", "keep", one, "--again", another, *root]) == 2
    assert "has no claim in common with" in capsys.readouterr().err


def test_of_another_run_the_verdicts_alone_may_be_kept(tmp_path: Path) -> None:
    """So it is with what was kept before rounds were."""
    run(tiny(FIGURE + CLAIMS), Store(tmp_path / "one"))
    (tmp_path / "docs").mkdir()
    one, root = str(tmp_path / "one"), ["--root", str(tmp_path)]
    assert main(["experiment", "keep", one, *root]) == 0
    before = (tmp_path / "results" / "tiny").rename(tmp_path / "before")
    (before / FILE).unlink()
    assert main(["experiment", "keep", one, "--again", str(before), *root]) == 0
    kept = json.loads((tmp_path / "results" / "tiny" / "verdicts.json").read_text(encoding="utf-8"))
    assert kept["again"]["claims"] == 2
