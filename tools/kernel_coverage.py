"""Sums up what gcov counted: lines of .pyx, .pxd and .hpp files that ran, of those that can run.

python tools/kernel_coverage.py FOLDER FLOOR    FOLDER has the .gcda files; exit code 1 below FLOOR percent
"""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

KINDS = (".pyx", ".pxd", ".hpp")
COMMENT = re.compile(r'\s*/\* "(.+)":(\d+)$')


def reports(folder: Path) -> Iterator[dict[str, Any]]:
    """What gcov says of each object file. Of a kernel that no test loaded: that none of its lines ran."""
    for notes in sorted(folder.resolve().rglob("*.gcno")):
        with tempfile.TemporaryDirectory() as work:
            command = ["gcov", "--json-format", "--object-directory", str(notes.parent), str(notes)]
            subprocess.run(command, cwd=work, check=True, capture_output=True)
            for file in Path(work).glob("*.gcov.json.gz"):
                yield json.loads(gzip.decompress(file.read_bytes()))


def sources_of(generated: Path) -> list[tuple[str, int] | None]:
    """By line of a generated file: the file and line that it was made from, as Cython's comments say."""
    made_from: list[tuple[str, int] | None] = [None]
    for line in generated.read_text(errors="replace").splitlines():
        comment = COMMENT.match(line)
        made_from.append((comment[1], int(comment[2])) if comment else made_from[-1])
    return made_from


def counted(folder: Path) -> dict[str, dict[int, bool]]:
    """By file of ours: its lines, and whether each ran. A header's line ran if it did in some kernel."""
    lines: dict[str, dict[int, bool]] = defaultdict(dict)
    for report in reports(folder):
        for file in report["files"]:
            path = Path(report["current_working_directory"], file["file"])
            made_from = sources_of(path) if path.suffix == ".cpp" else None
            for line in file["lines"]:
                place = (str(path), line["line_number"]) if made_from is None else made_from[line["line_number"]]
                if place and place[0].endswith(KINDS) and "xsift/" in place[0]:
                    of_file = lines["xsift/" + place[0].rsplit("xsift/", 1)[1]]
                    of_file[place[1]] = of_file.get(place[1], False) or line["count"] > 0
    return lines


def main(folder: str, floor: str) -> int:
    lines = counted(Path(folder))
    for name, of_file in sorted(lines.items()):
        ran = sum(of_file.values())
        print(f"{ran:6} of {len(of_file):5} lines {ran / len(of_file):5.0%}  {name}")
    ran = sum(sum(of_file.values()) for of_file in lines.values())
    percent = 100 * ran / max(1, sum(len(of_file) for of_file in lines.values()))
    print(f"Kernels covered: {percent:.1f} %, the floor is {floor}")
    return percent < float(floor)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
