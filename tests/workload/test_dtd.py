"""The DTD reader: real DTDs' difficulties, what is shipped, and one error for each way a DTD can be unusable."""

from __future__ import annotations

from pathlib import Path

import pytest

from xsift.errors import WorkloadError
from xsift.workload.dtd import NEVER, Particle, read_dtd, shipped_dtds


def written(folder: Path, text: str | bytes, name: str = "test.dtd") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def failure(path: Path | str, root: str | None = None) -> WorkloadError:
    with pytest.raises(WorkloadError) as caught:
        read_dtd(path, root)
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize(
    ("name", "root", "elements", "attributes"),
    [
        ("auction", "site", 77, 16),
        ("book", "book", 7, 6),
        ("nitf", "nitf", 123, 513),
        ("psd", "ProteinDatabase", 66, 8),
        ("treebank", "FILE", 250, 6),
    ],
)
def test_shipped(name: str, root: str, elements: int, attributes: int) -> None:
    dtd = read_dtd(name)
    assert dtd.root == root
    assert len(dtd.elements) == elements
    assert sum(len(element.attributes) for element in dtd.elements.values()) == attributes
    assert name in shipped_dtds()


@pytest.mark.parametrize(("name", "recursive"), [("book", True), ("nitf", True), ("treebank", True), ("psd", False)])
def test_recursion_is_that_of_the_originals(name: str, recursive: bool) -> None:
    dtd = read_dtd(name)

    def reaches(start: str) -> set[str]:
        seen: set[str] = set()
        todo = list(dtd.elements[start].children)
        while todo:
            child = todo.pop()
            if child not in seen:
                seen.add(child)
                todo.extend(dtd.elements[child].children)
        return seen

    assert any(element in reaches(element) for element in dtd.elements) is recursive


def test_parameter_entities_conditional_sections_and_carriage_returns(tmp_path: Path) -> None:
    text = """
    <!ENTITY % draft "INCLUDE"><!ENTITY % final "IGNORE">
    <!ENTITY % inline "#PCDATA | em"><!ENTITY % key "id ID #IMPLIED">
    <!-- a comment with <!ELEMENT fake (x)> in it -->
    <![%draft;[<!ELEMENT article (title, (p | list)+)>]]>
    <![%final;[<!ELEMENT article (title)>]]>
    <!ATTLIST article %key; status (new | old) "new" version CDATA #FIXED "1">
    <!ELEMENT title (%inline;)*><!ELEMENT p (%inline;)*><!ELEMENT em (#PCDATA)>
    <!ELEMENT list (item*)><!ELEMENT item ANY><!ATTLIST item to IDREF #REQUIRED kind NMTOKEN #IMPLIED>
    """
    dtd = read_dtd(written(tmp_path, text.replace("\n", "\r")))
    assert dtd.root == "article"
    assert list(dtd.elements) == ["article", "title", "p", "em", "list", "item"]
    assert dtd.elements["article"].children == ("title", "p", "list")
    assert dtd.elements["title"].kind == dtd.elements["em"].kind == "mixed"
    assert dtd.elements["item"].children == tuple(dtd.elements)
    identifier, status, version = dtd.elements["article"].attributes
    assert (identifier.name, identifier.kind, identifier.required) == ("id", "id", False)
    assert (status.kind, status.values, status.default) == ("enumeration", ("new", "old"), "new")
    assert (version.fixed, version.default) == (True, "1")
    assert [(a.name, a.kind, a.required) for a in dtd.elements["item"].attributes] == [
        ("kind", "number", False),
        ("to", "reference", True),
    ]


def test_content_models_are_flat_and_keep_occurrences(tmp_path: Path) -> None:
    text = (
        "<!ELEMENT r (a?, (b | c)*, (d, e)+)>"
        "<!ELEMENT a EMPTY><!ELEMENT b EMPTY><!ELEMENT c EMPTY><!ELEMENT d EMPTY><!ELEMENT e EMPTY>"
    )
    b, c, d, e = (Particle("element", name=name) for name in "bcde")
    assert read_dtd(written(tmp_path, text)).elements["r"].content == Particle(
        "sequence",
        parts=(
            Particle("element", "optional", "a"),
            Particle("choice", "any", parts=(b, c)),
            Particle("sequence", "many", parts=(d, e)),
        ),
    )


def test_levels_to_finish(tmp_path: Path) -> None:
    text = "<!ELEMENT r (a | b)><!ELEMENT a (c)><!ELEMENT b (b?)><!ELEMENT c (c)>"
    dtd = read_dtd(written(tmp_path, text))
    assert dtd.least_levels == {"r": 2, "a": NEVER, "b": 1, "c": NEVER}
    assert dtd.reachable == ("r", "b")


def test_prefixes_are_kept(tmp_path: Path) -> None:
    dtd = read_dtd(written(tmp_path, "<!ELEMENT n:r (n:a, b)><!ELEMENT n:a EMPTY><!ELEMENT b EMPTY>"))
    assert dtd.elements["n:r"].children == ("n:a", "b")
    assert failure(written(tmp_path, "<!ELEMENT r (n:a, a)><!ELEMENT n:a EMPTY><!ELEMENT a EMPTY>")).code == (
        "ambiguous-prefix"
    )


def test_root_can_be_chosen(tmp_path: Path) -> None:
    path = written(tmp_path, "<!ELEMENT a (b)><!ELEMENT b (b?)>")
    assert read_dtd(path).root == "a"
    assert read_dtd(path, "b").root == "b"
    error = failure(path, "c")
    assert error.code == "root-not-declared"
    assert "a, b" in error.hint


def test_root_of_a_ring_is_the_first(tmp_path: Path) -> None:
    assert read_dtd(written(tmp_path, "<!ELEMENT a (b?)><!ELEMENT b (a?)>")).root == "a"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "dtd-is-empty"),
        ("<!-- nothing -->", "dtd-is-empty"),
        ("<document/>", "dtd-not-readable"),
        ("\0\1", "dtd-not-readable"),
        ("<!ELEMENT a (b,>", "dtd-not-readable"),
        ("<!ELEMENT a (b, c | d)>", "dtd-not-readable"),
        ("<!ELEMENT a EMPTY><!ELEMENT a ANY>", "dtd-not-readable"),
        ("<!ELEMENT a (b)>%nowhere;<!ELEMENT b EMPTY>", "dtd-not-readable"),
        ("<!ELEMENT a (b, c?)>", "element-not-declared"),
        ("<!ELEMENT a (a)>", "no-finite-document"),
        ("<!ELEMENT a (b | c)><!ELEMENT b (c+)><!ELEMENT c (x*, b)><!ELEMENT x EMPTY>", "no-finite-document"),
    ],
)
def test_unusable(tmp_path: Path, text: str, code: str) -> None:
    assert failure(written(tmp_path, text)).code == code


def test_unreadable_says_where(tmp_path: Path) -> None:
    assert "line 3" in failure(written(tmp_path, "<!ELEMENT a EMPTY>\n\n<!ELEMENT b (c,>")).message


def test_missing_file_lists_what_is_shipped() -> None:
    error = failure("no/such.dtd")
    assert error.code == "dtd-not-found"
    assert "nitf" in error.hint


def test_files_of_its_folder_are_included_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "more").mkdir(parents=True)
    written(folder / "more", '<!ENTITY % deeper SYSTEM "b.ent">%deeper;<!ELEMENT a (b)>', "a.ent")
    written(folder / "more", "<!ELEMENT b EMPTY>", "b.ent")
    assert len(read_dtd(written(folder, '<!ENTITY % a SYSTEM "more/a.ent">%a;<!ELEMENT r (a)>')).elements) == 3
    written(tmp_path, "<!ELEMENT a EMPTY>", "outside.ent")
    for address in (
        "../outside.ent",
        "http://localhost:1/a.ent",
        "file:///etc/hostname",
        "/etc/hostname",
        "none.ent",
    ):
        path = written(folder, f'<!ENTITY % a SYSTEM "{address}">%a;<!ELEMENT r (a)>')
        assert failure(path).code == "external-entity"


def test_entities_that_explode_are_refused(tmp_path: Path) -> None:
    levels = "".join(f'<!ENTITY % e{i} "{f"%e{i - 1};" * 10}">' for i in range(1, 9))
    text = f'<!ENTITY % e0 "<!-- {"x" * 1000} -->">{levels}%e8;<!ELEMENT a EMPTY>'
    assert failure(written(tmp_path, text)).code == "dtd-not-readable"
