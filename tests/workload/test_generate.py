"""`xsift generate`: every option, every kind of file, the same bytes twice, and errors that say what to do."""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import json
import tarfile
import zipfile
from dataclasses import fields
from pathlib import Path

import pyarrow.parquet
import pytest

import xsift
from xsift.cli import generate
from xsift.errors import WorkloadError
from xsift.sources.documents import read_documents
from xsift.sources.subscriptions import read_subscriptions
from xsift.workload import DocumentGenerator, DocumentParameters, SubscriptionGenerator, SubscriptionParameters
from xsift.workload.output import DOCUMENT_ENDINGS, SUBSCRIPTION_ENDINGS, write_documents, write_subscriptions


def run(*arguments: object) -> int:
    parser = argparse.ArgumentParser()
    generate.configure(parser)
    return generate.run(parser.parse_args([str(argument) for argument in arguments]))


DOCUMENTS = list(DocumentGenerator(DocumentParameters(number=12, levels=5)))
TEXTS = list(SubscriptionGenerator(SubscriptionParameters(number=12, conditions=1)))


def test_a_folder_of_documents(tmp_path: Path) -> None:
    assert run("documents", "--dtd", "nitf", "--number", 12, "--levels", 5, "--output", f"{tmp_path}/news/") == 0
    paths = sorted((tmp_path / "news").iterdir())
    assert [path.name for path in paths][:2] == ["document-01.xml", "document-02.xml"]
    assert [path.read_bytes() for path in paths] == DOCUMENTS


@pytest.mark.parametrize("ending", DOCUMENT_ENDINGS)
def test_kinds_of_document_files(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"news{ending}"
    assert run("documents", "--number", 12, "--levels", 5, "--output", path) == 0
    found = [document for document in read_documents([path]) if isinstance(document, xsift.Document)]
    assert [document.source for document in found] == DOCUMENTS
    assert str(found[0].label).endswith(("document-01", "document-01.xml"))
    before = path.read_bytes()
    assert run("documents", "--number", 12, "--levels", 5, "--output", path) == 0
    assert path.read_bytes() == before
    assert [left.name for left in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("ending", SUBSCRIPTION_ENDINGS)
@pytest.mark.parametrize("ordered", [False, True])
def test_kinds_of_subscription_files(tmp_path: Path, ending: str, ordered: bool) -> None:
    path = tmp_path / f"alerts{ending}"
    write_subscriptions(TEXTS, str(path), len(TEXTS), ordered=ordered)
    table = read_subscriptions(path).table
    assert table["xpath"].to_pylist() == TEXTS
    assert table["id"].to_pylist()[:2] == ["s01", "s02"]
    assert table["ordered"].to_pylist() == [ordered] * 12


def test_files_are_what_their_endings_say(tmp_path: Path) -> None:
    names = {ending: tmp_path / f"news{ending}" for ending in DOCUMENT_ENDINGS}
    for path in names.values():
        write_documents(DOCUMENTS, str(path), 12)
    assert len(zipfile.ZipFile(names[".zip"]).namelist()) == 12
    with tarfile.open(names[".tar.gz"], "r:gz") as compressed, tarfile.open(names[".tar"], "r:") as plain:
        assert len(compressed.getnames()) == 12
        assert compressed.getnames() == plain.getnames()
    assert json.loads(names[".jsonl"].read_text().splitlines()[0])["id"] == "document-01"
    assert gzip.decompress(names[".jsonl.gz"].read_bytes()) == names[".jsonl"].read_bytes()
    assert pyarrow.parquet.read_table(names[".parquet"]).num_rows == 12
    path = tmp_path / "alerts.csv"
    write_subscriptions(TEXTS, str(path), 12)
    assert next(csv.DictReader(path.read_text().splitlines()))["xpath"] == TEXTS[0]


def test_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("subscriptions", "--number", 12, "--conditions", 1) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines() == [f"s{number:02}\t{text}" for number, text in enumerate(TEXTS, 1)]
    assert captured.err == ""  # no progress bar unless someone is looking


def test_presets_and_options_over_them(tmp_path: Path) -> None:
    path = tmp_path / "alerts.tsv"
    assert run("subscriptions", "--like", "bfilter", "--number", 50, "--nested-paths", 2, "--output", path) == 0
    for line in path.read_text().splitlines():
        text = line.split("\t")[1]
        assert sum(not part.startswith(("@", "text()")) for part in text.split("[")[1:]) == 2
        assert text.count("[@") + text.count("[text()") == 3


def test_presets_are_the_same_bytes_again(tmp_path: Path) -> None:
    digests = set()
    for name in ("one", "two"):
        run("documents", "--like", "predicate", "--number", 20, "--output", tmp_path / f"{name}.tar.gz")
        run("subscriptions", "--like", "predicate", "--number", 500, "--output", tmp_path / f"{name}.tsv.gz")
        content = (tmp_path / f"{name}.tar.gz").read_bytes() + (tmp_path / f"{name}.tsv.gz").read_bytes()
        digests.add(hashlib.sha256(content).hexdigest())
    assert len(digests) == 1


def test_every_parameter_is_an_option() -> None:
    parser = argparse.ArgumentParser()
    generate.configure(parser)
    for kind, parameters in (("documents", DocumentParameters()), ("subscriptions", SubscriptionParameters())):
        options = ["--output", "x"]
        for field in fields(parameters):
            value = getattr(parameters, field.name)
            option = f"--{field.name.replace('_', '-')}"
            options += [option] if isinstance(value, bool) else [option, "0.5" if value is None else str(value)]
        parsed = parser.parse_args([kind, *options])
        assert all(hasattr(parsed, field.name) for field in fields(parameters))


def test_off_switches(tmp_path: Path) -> None:
    path = tmp_path / "alerts.tsv"
    assert run("subscriptions", "--like", "ifist-nitf", "--no-ordered", "--number", 5, "--output", path) == 0
    assert "true" not in path.read_text()


def test_selectivity(tmp_path: Path) -> None:
    run("documents", "--number", 10, "--size-bytes", 3000, "--output", tmp_path / "news.zip")
    path = tmp_path / "alerts.tsv"
    sample = ["--sample-from", tmp_path / "news.zip"]
    assert run("subscriptions", "--number", 200, "--selectivity", 0.2, "--output", path, *sample) == 0
    texts = [line.split("\t")[1] for line in path.read_text().splitlines()]
    found = read_documents([tmp_path / "news.zip"])
    documents = [document.source for document in found if isinstance(document, xsift.Document)]
    counts = generate._Counting(False)(texts, documents)
    assert abs(sum(counts) / len(texts) / len(documents) - 0.2) < 0.02
    assert run("subscriptions", "--number", 20, "--selectivity", 0.2, "--sample", 5, "--output", path) == 0


def test_a_sample_from_files(tmp_path: Path) -> None:
    """Documents are read wherever they are: a file, a compressed one, a folder."""
    run("documents", "--number", 3, "--output", tmp_path / "news/")
    first = next((tmp_path / "news").iterdir())
    (tmp_path / "one.xml.gz").write_bytes(gzip.compress(first.read_bytes()))
    path, wanted = tmp_path / "alerts.tsv", ["--number", 20, "--selectivity", 0.2, "--sample-from"]
    for sample in (tmp_path / "news", first, tmp_path / "one.xml.gz"):
        assert run("subscriptions", "--output", path, *wanted, sample) == 0
    with pytest.raises(xsift.DocumentError, match="nowhere cannot be read"):
        run("subscriptions", "--output", path, *wanted, tmp_path / "nowhere")


def test_figures(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("figures", "--like", "bfilter", "xtrie", "--sample", 5) == 0
    out = capsys.readouterr().out
    assert "| `xtrie` | elements of the DTD | 123 | 123 |" in out
    assert "| `bfilter` | depth of documents | 6 | 6 |" in out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["documents", "--output", "news.doc"], "unknown-format"),
        (["documents", "--output", "-"], "unknown-format"),
        (["subscriptions", "--output", "alerts.txt"], "unknown-format"),
        (["subscriptions", "--output", "alerts"], "unknown-format"),
        (["documents", "--output", "nowhere/news.zip"], "output-not-writable"),
        (["subscriptions", "--output", "nowhere/alerts.tsv"], "output-not-writable"),
        (["documents", "--output", "full"], "folder-not-empty"),
        (["documents", "--dtd", "nowhere", "--output", "news/"], "dtd-not-found"),
        (["documents", "--levels", "-1", "--output", "news/"], "parameter-out-of-range"),
        (["documents", "--like", "nobody", "--output", "news/"], "preset-unknown"),
        (["figures", "--like", "nobody"], "preset-unknown"),
        (["subscriptions", "--selectivity", "0.1", "--sample", "0"], "parameter-out-of-range"),
        (["figures", "--like", "bfilter", "--sample", "0"], "parameter-out-of-range"),
    ],
)
def test_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(WorkloadError) as caught:
        run(*arguments)
    assert caught.value.code == code
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "news") == ["full"]


def test_force_writes_into_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert run("documents", "--number", 2, "--output", tmp_path, "--force") == 0
    assert len(list(tmp_path.iterdir())) == 3


def test_what_fails_half_way_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "alerts.tsv"
    path.write_text("as before")
    with pytest.raises(WorkloadError):
        run("subscriptions", "--dtd", "book", "--maximum-depth", 2, "--distinct", "--number", 9999, "--output", path)
    assert path.read_text() == "as before"
    assert [left.name for left in tmp_path.iterdir()] == ["alerts.tsv"]
