"""Documents from files, folders, archives, tables and pipes: every one comes out, as a document or as an error."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet
import pytest

from xsift import Document, DocumentError, Limits, Subscriptions
from xsift.sources.documents import DocumentSources, read_documents

XML = b"<a><b>1</b></a>"


def content(found: Document | DocumentError) -> bytes:
    assert isinstance(found, Document), found
    return bytes(found.loaded(1 << 30).source)


def codes(found: list[Document | DocumentError]) -> list[tuple[str | None, str]]:
    return [(item.label, item.code if isinstance(item, DocumentError) else "") for item in found]


def zstd(data: bytes) -> bytes:
    return pa.Codec("zstd").compress(data, asbytes=True)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("ending", "compress"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress), (".ZST", zstd)]
)
def test_compressed_documents(tmp_path: Path, ending: str, compress: Any) -> None:
    path = tmp_path / f"a.xml{ending}"
    path.write_bytes(compress(XML) + compress(b"<!-- more -->"))
    assert content(next(read_documents([path]))) == XML + b"<!-- more -->"
    path.write_bytes(compress(XML * 1000)[:-6])
    document = next(read_documents([path]))
    with pytest.raises(DocumentError) as caught:
        content(document)
    assert caught.value.code == "unreadable-file"


def test_an_xz_file_that_wants_much_memory_is_refused(tmp_path: Path) -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 1 << 30}]
    data = bytearray(lzma.compress(b"<a/>", filters=filters))
    (tmp_path / "a.xml.xz").write_bytes(data)
    with pytest.raises(DocumentError, match="Memory usage limit"):
        content(next(read_documents([tmp_path / "a.xml.xz"])))


def test_json_lines_go_on_after_a_bad_row(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    lines = [
        '\ufeff{"xml": "<a/>"}',
        '{"id": "x"}',
        '{"id": 7, "xml": "<b/>"}',
        "{",
        '{"id": "n", "xml": "no"}',
        "[]",
    ]
    lines += [
        '{"id": null, "xml": "<c/>"}',
        '{"id": [1], "xml": "<d/>"}',
        '{"xml": 5}',
        '{"id":"s","xml":"<a>\\ud800</a>"}',
    ]
    path.write_text("\n".join(lines))
    assert codes(list(read_documents([path]))) == [
        (f"{path}:1", ""),
        (f"{path}:2", "bad-row"),
        ("7", ""),
        (f"{path}:4", "bad-row"),
        ("n", "not-a-document"),
        (f"{path}:6", "bad-row"),
        (f"{path}:7", ""),
        (f"{path}:8", "bad-row"),
        (f"{path}:9", "bad-row"),
        ("s", "lone-surrogate"),
    ]


@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.large_string()])
def test_rows_of_parquet_have_their_own_labels(tmp_path: Path, kind: Any) -> None:
    path = tmp_path / "d.parquet"
    pyarrow.parquet.write_table(
        pa.table({"xml": pa.array([XML.decode()] * 600).cast(kind)}), path, row_group_size=100
    )
    found = list(read_documents([path]))
    assert [item.label for item in found] == [f"{path}:{row}" for row in range(1, 601)]
    assert content(found[599]) == XML
    pyarrow.parquet.write_table(
        pa.table({"id": ["a", None, "c"], "xml": pa.array(["<a/>", "<b/>", None], pa.string())}), path
    )
    assert codes(list(read_documents([path]))) == [("a", ""), (f"{path}:2", ""), ("c", "bad-row")]
    pyarrow.parquet.write_table(pa.table({"id": ["a"]}), path)
    assert codes(list(read_documents([path]))) == [(str(path), "missing-column")]


def test_parquet_files_that_have_no_documents_are_errors(tmp_path: Path) -> None:
    """Columns of any type, and twice of a name: the files beside them go on."""
    tables = {
        "list": pa.table({"xml": [["<a/>"]]}),
        "map": pa.table({"xml": pa.array([[("a", "b")]], pa.map_(pa.string(), pa.string()))}),
        "struct": pa.table({"xml": [{"a": "<a/>"}]}),
        "twice": pa.Table.from_arrays([pa.array(["<a/>"])] * 2, names=["xml", "xml"]),
        "whole": pa.table({"id": [b"\xffid"], "xml": ["<a/>"]}),
    }
    for name, table in tables.items():
        pyarrow.parquet.write_table(table, tmp_path / f"{name}.parquet")
    assert codes(list(read_documents([tmp_path]))) == [
        *[(f"{tmp_path}/{name}.parquet:1", "bad-row") for name in ("list", "map", "struct")],
        (f"{tmp_path}/twice.parquet", "bad-column"),
        ("\\xffid", ""),
    ]


def test_folders_take_what_is_xml_and_count_the_rest(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    for name in ("a.xml", "b.nitf", "c.XML", "d", "deep/er/e.xml", "f.XML.gz"):
        (tmp_path / name).write_bytes(gzip.compress(XML) if name.endswith("gz") else XML)
    (tmp_path / "broken.xml").write_bytes(b"not XML")
    (tmp_path / "g.dat").write_bytes("<a/>".encode("utf-16"))
    (tmp_path / "README.txt").write_text("Hello")
    (tmp_path / "index.html").write_text("<html>")
    (tmp_path / ".hidden.xml").write_bytes(XML)
    (tmp_path / "h.jsonl").write_text('{"id": "row", "xml": "<a/>"}')
    os.mkfifo(tmp_path / "pipe")
    os.symlink(tmp_path, tmp_path / "deep" / "round")
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        archive.writestr("1.xml", XML)
    sources = DocumentSources([tmp_path])
    names = [os.path.relpath(str(found.label), tmp_path) for found in sources]
    assert [name for name in names if not name.endswith("row")] == [
        "a.xml", "b.nitf", "broken.xml", "c.XML", "d", "deep/er/e.xml", "f.XML.gz", "g.dat", "z.zip/1.xml",
    ]  # fmt: skip
    assert sources.passed_over == 3
    assert {Path(name).name for name in sources.passed_over_names} == {"README.txt", "index.html", "pipe"}


def test_a_glob_and_what_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_bytes(XML)
    found = list(read_documents([tmp_path / "*.xml", tmp_path / "*.nothing"]))
    assert codes(found) == [(str(tmp_path / "a.xml"), ""), (str(tmp_path / "*.nothing"), "unreadable-file")]


def test_globs_take_what_folders_do_and_nothing_twice(tmp_path: Path) -> None:
    for name in ("a.xml", "in/b.xml", "in/side/c.xml", ".hidden/d.xml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(XML)
    (tmp_path / "notes.txt").write_text("no XML")
    (tmp_path / "in" / "page.html").write_bytes(XML)
    (tmp_path / "in" / "round").symlink_to("..")
    os.mkfifo(tmp_path / "in" / "pipe.xml")
    every = [f"{tmp_path}/{name}" for name in ("a.xml", "in/b.xml", "in/side/c.xml")]
    for pattern in ("**", "**/*", "*", "**/**", "**/*.xml"):
        sources = DocumentSources([tmp_path / pattern])
        found = [label for label, _ in codes(list(sources))]
        assert found == every, pattern
        assert sources.passed_over == (1 if pattern == "**/*.xml" else 3), pattern
    assert codes(list(read_documents([tmp_path / "**" / "*.html"]))) == [(f"{tmp_path}/in/page.html", "")]
    assert codes(list(read_documents([tmp_path / "*.txt"]))) == [(f"{tmp_path}/notes.txt", "")]


def test_links_that_lead_nowhere_do_not_end_a_folder(tmp_path: Path) -> None:
    for name, target in (("around.xml", "around.xml"), ("gone", "nowhere"), ("self", "self")):
        (tmp_path / name).symlink_to(target)
    (tmp_path / "z.xml").write_bytes(XML)
    sources = DocumentSources([tmp_path])
    around, whole = sources
    with pytest.raises(DocumentError, match=r"around\.xml cannot be read"):
        content(around)
    assert content(whole) == XML
    assert sources.passed_over == 2


def test_names_that_are_no_text_can_be_printed(tmp_path: Path) -> None:
    with open(os.path.join(os.fsencode(tmp_path), b"caf\xe9.xml"), "wb") as file:
        file.write(XML)
    (found,) = read_documents([tmp_path])
    assert found.label == f"{tmp_path}/caf\\xe9.xml"
    assert content(found) == XML


# Archives


def make_zip(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> None:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def test_members_of_archives(tmp_path: Path) -> None:
    members = {
        "a.xml": XML,
        "folder/README.txt": b"hello",
        "b.nitf": XML,
        "c.xml.gz": gzip.compress(XML),
        "long" * 60 + "/d.xml": XML,
        "big.xml": b"<a>" + b" " * (3 << 20) + b"</a>",
        "big.xml.bz2": bz2.compress(b"<a>" + b" " * (3 << 20) + b"</a>"),
    }
    make_zip(tmp_path / "t.zip", members)
    archives: list[tuple[int, Literal["w", "w:gz", "w:xz"], str]] = [
        (tarfile.GNU_FORMAT, "w", "g.tar"),
        (tarfile.PAX_FORMAT, "w:gz", "p.tar.gz"),
        (tarfile.PAX_FORMAT, "w:xz", "p.txz"),
    ]
    for format, mode, name in archives:
        with tarfile.open(tmp_path / name, mode, format=format) as archive:
            archive.addfile(folder_entry())
            for member, data in members.items():
                info = tarfile.TarInfo(member)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    for name in ("t.zip", "g.tar", "p.tar.gz", "p.txz"):
        sources = DocumentSources([tmp_path / name])
        found = {str(item.label).removeprefix(f"{tmp_path}/{name}/"): content(item) for item in sources}
        assert list(found) == [member for member in members if "README" not in member]
        assert found["c.xml.gz"] == XML
        assert found["big.xml"] == found["big.xml.bz2"] == members["big.xml"]
        assert sources.passed_over_names == [f"{tmp_path}/{name}/folder/README.txt"]


def folder_entry() -> tarfile.TarInfo:
    info = tarfile.TarInfo("folder")
    info.type = tarfile.DIRTYPE
    return info


def test_encrypted_and_odd_members_are_errors_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "t.zip"
    make_zip(path, {"a.xml": XML, "b.xml": XML, "c.xml": XML})
    data = bytearray(path.read_bytes())
    second = data.find(b"PK\x01\x02", data.find(b"PK\x01\x02") + 1)
    data[second + 8] |= 1  # of b.xml: encrypted
    path.write_bytes(data)
    assert codes(list(read_documents([path]))) == [
        (f"{path}/{name}.xml", code) for name, code in (("a", ""), ("b", "unreadable-file"), ("c", ""))
    ]
    make_zip(path, {"a.xml": XML}, zipfile.ZIP_LZMA)
    assert codes(list(read_documents([path]))) == [(f"{path}/a.xml", "unreadable-file")]
    path.write_bytes(b"PK no")
    assert codes(list(read_documents([path]))) == [(str(path), "unreadable-file")]


def test_too_large_members_are_not_read(tmp_path: Path) -> None:
    big = b"<a>" + b" " * (4 << 20) + b"</a>"
    make_zip(tmp_path / "t.zip", {"big.xml": big, "a.xml": XML})
    with tarfile.open(tmp_path / "t.tar.gz", "w:gz") as archive:
        for name, data in (("big.xml", big), ("a.xml", XML)):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    for name in ("t.zip", "t.tar.gz"):
        found = list(read_documents([tmp_path / name], limits=Limits(bytes=1 << 20)))
        assert codes(found) == [(f"{tmp_path}/{name}/big.xml", "too-large"), (f"{tmp_path}/{name}/a.xml", "")]


def test_a_name_that_no_file_can_have_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_bytes(XML)
    sources = DocumentSources(["a\0b", tmp_path / "a.xml"])
    matches = [match for batch in sources.batches(10) for match in Subscriptions().matcher().match_many(batch)]
    assert [match.error and match.error.code for match in matches] == ["unreadable-file", None]


def test_what_is_no_document_is_passed_over_whatever_its_size(tmp_path: Path) -> None:
    big = b"PNG" * 1000
    make_zip(tmp_path / "t.zip", {"p.png": big, "p": b" <a>" + big, "a.xml": b"<a/>"})
    with tarfile.open(tmp_path / "t.tar", "w") as archive:
        for name, data in (("p.png", big), ("p", b" <a>" + big), ("a.xml", b"<a/>")):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    for name in ("t.zip", "t.tar"):
        sources = DocumentSources([tmp_path / name], limits=Limits(bytes=100))
        assert codes(list(sources)) == [(f"{tmp_path}/{name}/p", "too-large"), (f"{tmp_path}/{name}/a.xml", "")]
        assert sources.passed_over_names == [f"{tmp_path}/{name}/p.png"]


def test_links_in_a_tar_are_told(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "t.tar", "w") as archive:
        for name, kind in (("a.xml", tarfile.LNKTYPE), ("b.xml", tarfile.SYMTYPE), ("c.so", tarfile.SYMTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "z.xml"
            info.size = 5000  # as some have it; nothing of it is there
            archive.addfile(info)
        info = tarfile.TarInfo("z.xml")
        info.size = len(XML)
        archive.addfile(info, io.BytesIO(XML))
    sources = DocumentSources([tmp_path / "t.tar"])
    expected = [("a", "unreadable-file"), ("b", "unreadable-file"), ("z", "")]
    assert codes(list(sources)) == [(f"{tmp_path}/t.tar/{name}.xml", code) for name, code in expected]
    assert sources.passed_over_names == [f"{tmp_path}/t.tar/c.so"]


def test_hostile_headers_of_a_tar_are_not_believed(tmp_path: Path) -> None:
    def header(kind: bytes, size: int, name: bytes = b"a.xml") -> bytes:
        block = bytearray(512)
        block[: len(name)] = name
        block[124:136] = b"%011o\0" % size if size < 8**11 else b"\x80" + size.to_bytes(11, "big")
        block[156:157] = kind
        block[257:263] = b"ustar\0"
        block[148:156] = b" " * 8
        block[148:156] = b"%06o\0 " % sum(block)
        return bytes(block)

    path = tmp_path / "t.tar"
    for kind, size in ((b"x", 1 << 40), (b"L", 1 << 40), (b"0", 1 << 20)):
        path.write_bytes(header(kind, size) + XML)
        assert codes(list(read_documents([path]))) == [(str(path), "unreadable-file")]
    path.write_bytes(header(b"0", 1 << 60))
    assert codes(list(read_documents([path]))) == [(f"{path}/a.xml", "too-large")]
    path.write_bytes(header(b"S", 512) + bytes(512) + header(b"0", 4, b"b.xml") + b"<b/>" + bytes(508))
    assert codes(list(read_documents([path]))) == [(f"{path}/a.xml", "unreadable-file"), (f"{path}/b.xml", "")]
    path.write_bytes(b"")
    assert codes(list(read_documents([path]))) == [(str(path), "unreadable-file")]


# Records


def test_records_of_a_file(tmp_path: Path) -> None:
    dump = b'<d xmlns:n="urn:n"><r id="1"><n:x/></r><o/><r id="2"/></d>'
    (tmp_path / "d.xml").write_bytes(dump)
    (tmp_path / "d.xml.gz").write_bytes(gzip.compress(dump))
    make_zip(tmp_path / "d.zip", {"d.xml": dump, "none.xml": b"<d/>"})
    for name in ("d.xml", "d.xml.gz"):
        found = list(read_documents([tmp_path / name], record="r"))
        assert [content(item) for item in found] == [
            b'<r xmlns:n="urn:n" id="1"><n:x/></r>',
            b'<r xmlns:n="urn:n" id="2"/>',
        ]
        assert [item.label for item in found] == [
            f"{tmp_path}/{name}:{dump.find(start)}" for start in (b'<r id="1', b'<r id="2')
        ]
    found = list(read_documents([tmp_path / "d.zip"], record="r"))
    assert [code for _, code in codes(found)] == ["", "", "no-record"]
    assert codes(list(read_documents([tmp_path / "d.xml"], record="q"))) == [(f"{tmp_path}/d.xml", "no-record")]


def test_records_of_rows_and_members(tmp_path: Path) -> None:
    """What holds documents is cut like a file; of what is no such document one error, and the rest goes on."""
    xml = "<d><r>1</r><r>2</r></d>"
    rows = [{"id": "x", "xml": xml}, {"id": "y", "xml": "<d/>"}, {"id": "z", "xml": "<r/>"}]
    (tmp_path / "d.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    pyarrow.parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "d.parquet")
    for name in ("d.jsonl", "d.parquet"):
        found = list(read_documents([tmp_path / name], record="r"))
        assert codes(found) == [("x:3", ""), ("x:11", ""), ("y", "no-record"), ("z:0", "")]
        assert content(found[1]) == b"<r>2</r>"


@pytest.mark.parametrize("encoding", ["cp1252", "shift_jis", "utf-8", "utf-16", "utf-16-be"])
def test_records_in_an_encoding_that_is_given(tmp_path: Path, encoding: str) -> None:
    """Whatever the file declares, like a document that is not cut."""
    text = "é" if encoding == "cp1252" else "本"
    data = f"<?xml version='1.0' encoding='iso-8859-2'?><d><r>{text}</r></d>".encode(encoding)
    (tmp_path / "d.xml").write_bytes(data)
    make_zip(tmp_path / "d.zip", {"d.xml": data})
    for name in ("d.xml", "d.zip"):
        (found,) = read_documents([tmp_path / name], record="r", encoding=encoding)
        assert content(found).decode() == f"<r>{text}</r>"


@pytest.mark.parametrize("encoding", ["cp1252", "iso-8859-1", "utf-8", "utf-16"])
def test_a_record_whose_name_is_not_ascii(tmp_path: Path, encoding: str) -> None:
    text = f"<?xml version='1.0' encoding='{encoding}'?><été xmlns='urn:é'><é>ü</é></été>"
    path = tmp_path / "d.xml"
    path.write_bytes(text.encode(encoding))
    for given in (None, encoding):
        assert content(*read_documents([path], record="é", encoding=given)).decode() == "<é xmlns='urn:é'>ü</é>"
        assert codes(list(read_documents([path], record="本", encoding=given))) == [(str(path), "no-record")]
    path.write_bytes(text.replace(encoding, "ascii").encode(encoding))
    assert content(*read_documents([path], record="é", encoding=encoding)).decode() == "<é xmlns='urn:é'>ü</é>"


def test_the_limit_on_what_records_repeat_reaches(tmp_path: Path) -> None:
    (tmp_path / "d.xml").write_bytes(b'<d xmlns:n="urn:%s">' % (b"n" * 1000) + b"<r/>" * 9 + b"</d>")
    strict = Limits(amplification=1, amplification_bytes=5000)
    found = list(read_documents([tmp_path / "d.xml"], record="r", limits=strict))
    assert [code for _, code in codes(found)] == [*[""] * 4, "record-amplification"]


def test_a_record_that_is_too_long_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "d.xml").write_bytes(b"<d><r/><r>" + b"x" * 3_000_000 + b"</r></d>")
    found = list(read_documents([tmp_path / "d.xml"], record="r", limits=Limits(bytes=100_000)))
    assert [code for _, code in codes(found)] == ["", "record-too-long"]


def test_records_take_constant_memory(tmp_path: Path) -> None:
    """Batches are bounded by bytes, so that large records do not add up."""
    path = tmp_path / "d.xml"
    with path.open("wb") as file:
        file.write(b"<d>")
        for _ in range(40):
            file.write(b"<r>" + b"x" * (4 << 20) + b"</r>")
        file.write(b"</d>")
    sizes = [len(batch) for batch in DocumentSources([path], record="r").batches(1000)]
    assert sum(sizes) == 40
    assert max(sizes) <= 17


def test_batches(tmp_path: Path) -> None:
    for number in range(10):
        (tmp_path / f"{number}.xml").write_bytes(XML)
    (tmp_path / "5.xml").write_bytes(gzip.compress(XML))
    (tmp_path / "5.xml").rename(tmp_path / "5.xml.gz")
    sources = DocumentSources([tmp_path])
    assert [len(batch) for batch in sources.batches(4)] == [4, 2, 4]
    assert sources.total_bytes() == sum(path.stat().st_size for path in tmp_path.iterdir())
    assert DocumentSources(["-"]).total_bytes() is None


def test_progress_counts_what_was_read(tmp_path: Path) -> None:
    dump = b"<d>" + b"<r/>" * 1000 + b"</d>"
    (tmp_path / "a.xml").write_bytes(dump)
    (tmp_path / "b.xml.gz").write_bytes(gzip.compress(dump))
    (tmp_path / "c.xml.zst").write_bytes(zstd(dump))
    (tmp_path / "d.jsonl").write_text(json.dumps({"xml": dump.decode()}))
    sources = DocumentSources([tmp_path])
    for found in sources:
        content(found)
    assert sources.meter.done == sources.total_bytes()
    sources = DocumentSources([tmp_path / "a.xml", tmp_path / "c.xml.zst"], record="r")
    assert len(list(sources)) == 2000
    assert sources.meter.done == sources.total_bytes()


def test_a_gzip_of_zeros_is_read_in_pieces() -> None:
    """A stream gives what is asked for, and no more."""
    from xsift.sources.compression import decompressed

    packed = io.BytesIO(gzip.compress(bytes(50 << 20)))
    stream = decompressed(packed, "x.gz")
    assert len(stream.read(1000)) <= 1000
    assert packed.tell() < 1 << 20


def test_checksums_are_checked(tmp_path: Path) -> None:
    data = bytearray(gzip.compress(XML))
    data[-8:-4] = struct.pack("<I", zlib.crc32(XML) ^ 1)
    (tmp_path / "a.xml.gz").write_bytes(data)
    with pytest.raises(DocumentError, match="CRC"):
        content(next(read_documents([tmp_path / "a.xml.gz"])))
