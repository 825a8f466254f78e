from pathlib import Path

import pytest

from xsift.experiments import code_digest as digests
from xsift.experiments.code_digest import _sources, _written, code_digest

HEADER = "// Why.\n#include <vector>\nint half(int n) { return n / 2; }  // down\n"


def test_engines_of_different_folders_have_different_digests() -> None:
    assert len({code_digest(engine) for engine in ("sift", "yfilter", "ifist", "reference")}) == 4
    assert code_digest("ifist") == code_digest("fist")  # they share their code


@pytest.mark.parametrize(
    ("name", "text", "same", "other"),
    [
        ("a.hpp", HEADER, HEADER.replace("Why", "Why not"), HEADER.replace("n / 2", "n / 3")),
        ("a.hpp", HEADER, HEADER.replace("\nint", "\n\n// A half.\nint"), HEADER.replace("vector", "array")),
        (
            "a.pyx",
            '"""Why."""\nx = 7 // 2  # down\n',
            '"""Because."""\n\n# x\nx = 7 // 2\n',
            '"""Why."""\nx = 7 // 3\n',
        ),
    ],
)
def test_what_is_only_said_does_not_count(name: str, text: str, same: str, other: str, tmp_path: Path) -> None:
    path = tmp_path / name
    written = []
    for content in (text, same, other):
        path.write_text(content)
        written.append(_written(path))
    assert written[0] == written[1] != written[2]


def test_without_sources_the_compiled_module_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "engine.cpython-311-x86_64-linux-gnu.so"
    module.write_bytes(b"code")
    assert _sources(module) == [module]
    assert _written(module) == b"code"
    (tmp_path / "engine.pyx").touch()
    (tmp_path / "helper.hpp").touch()
    assert sorted(path.name for path in _sources(module)) == ["engine.pyx", "helper.hpp"]
    monkeypatch.setattr(digests, "ENGINES", tmp_path)
    assert [path.name for path in _sources(module)] == ["engine.pyx"]
