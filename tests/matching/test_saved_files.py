"""Files that are no saved matcher, although their checksum is right: an error, or a matcher that answers something;
never a crash. The loads happen in another process, so that one that crashes is seen.

    python -m tests.matching.test_saved_files --seconds 60    in this process, as `tools/sanitize .venv --fuzz` does
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xsift
from tests.language import NAMESPACES, ExpressionMaker, random_xml
from xsift.matching.storage import BODY, MAGIC, _aligned

NUMBER = int(os.environ.get("XSIFT_FILE_MUTATIONS", "400"))
ENGINES = (("sift",), ("sift", "always"), ("sift", "never"), ("sift", "never"), ("yfilter",))
NUMBERS = (-1, 0, 1, 2, 7, 255, 2**15, 2**31 - 1, -(2**31), 2**20, -2)


def a_matcher(chance: random.Random, engine: str = "sift", remember: str = "auto") -> xsift.Matcher:
    maker = ExpressionMaker(chance, beyond=0.2)
    subscriptions = xsift.Subscriptions(namespaces=NAMESPACES)
    for number in range(30):
        expression, ordered = maker.expression(), chance.random() < 0.2
        try:
            subscriptions.add(f"s{number}", expression, ordered=ordered)
        except xsift.XPathError:  # what it says cannot be matched in order
            subscriptions.add(f"s{number}", expression)
    for number in range(0, 30, 5):
        subscriptions.remove(f"s{number}")
    options: dict[str, Any] = {"remember": remember} if engine == "sift" else {}
    subscriptions.matcher(engine, **options)
    for number in range(3):
        subscriptions.add(f"late{number}", maker.expression())
    return subscriptions.matcher(engine, **options)


def with_checksum(header: bytes, body: bytes) -> bytes:
    """A file with this header, and arrays."""
    gap = bytes(_aligned(BODY + len(header)) - BODY - len(header))
    rest = header + gap + body
    return MAGIC + struct.pack("<QI", len(header), zlib.crc32(rest)) + rest


def mutated(data: bytes, chance: random.Random) -> bytes:
    length = struct.unpack_from("<Q", data, len(MAGIC))[0]
    header = json.loads(data[BODY : BODY + length])
    body = bytearray(data[_aligned(BODY + length) :])
    for _ in range(chance.choice([1, 1, 1, 2, 5])):
        chance.choice([_number, _number, _number, _flags, _bytes, _entry, _fact, _cut])(header, body, chance)
    header["bytes"] = len(body)
    return with_checksum(json.dumps(header).encode(), bytes(body))


def _place(header: Any, chance: random.Random, name: str = "") -> tuple[int, int]:
    """Where some array lies, and how long it is."""
    whole = [e for e in header["arrays"] if isinstance(e.get("shape"), list) and isinstance(e.get("offset"), int)]
    whole = [e for e in whole if str(e.get("name")).endswith(name)]
    if not whole:  # earlier changes left none
        return 0, 0
    entry = chance.choice(whole)
    size = {"|u1": 1, "<i4": 4, "<i8": 8}.get(str(entry.get("type")), 1)
    for extent in entry["shape"]:
        size *= extent if isinstance(extent, int) else 1
    return entry["offset"], max(0, size)


def _number(header: Any, body: bytearray, chance: random.Random) -> None:
    """Another number somewhere in an array."""
    offset, size = _place(header, chance)
    kind = chance.choice("iiq")
    width = 4 if kind == "i" else 8
    if size >= width and offset >= 0 and offset + size <= len(body):
        place = offset + chance.randrange(size // width) * width
        old = struct.unpack_from(f"<{kind}", body, place)[0]
        new = chance.choice([*NUMBERS, old + 1, old - 1, chance.randrange(-100, 1000)])
        struct.pack_into(f"<{kind}", body, place, max(-(2 ** (8 * width - 1)), min(new, 2 ** (8 * width - 1) - 1)))


def _flags(header: Any, body: bytearray, chance: random.Random) -> None:
    """What a state of sift's automaton tells of itself, and of the names that lead on."""
    offset, size = _place(header, chance, "sift.states")
    if size >= 32 and 0 <= offset <= len(body) - size:
        place = offset + chance.randrange(size // 32) * 32 + chance.choice([28, 29, 30])
        body[place] ^= 1 << chance.randrange(8)


def _bytes(header: Any, body: bytearray, chance: random.Random) -> None:
    for _ in range(chance.choice([1, 4, 30])):
        if body:
            body[chance.randrange(len(body))] = chance.randrange(256)


def _entry(header: Any, body: bytearray, chance: random.Random) -> None:
    """Another shape, type, name or place of an array."""
    entry = chance.choice(header["arrays"])
    other = chance.choice(header["arrays"])
    field = chance.choice(["shape", "shape", "type", "name", "offset"])
    if field == "shape":
        size = entry["shape"][0] if entry["shape"] and isinstance(entry["shape"][0], int) else 0
        entry["shape"] = chance.choice(
            [
                [],
                [0],
                [-1],
                [1, 1],
                [2**62, 4],
                [2**80],
                ["x"],
                [size // 2],
                [max(0, size - 1)],
                [size + 1],
                None,
                [1.5],
            ]
        )
    elif field == "type":
        entry["type"] = chance.choice(["|u1", "<i4", "<i8", "<f8", "O", "|V3", "<U9", 3, None])
    else:
        entry[field] = chance.choice([other[field], 64, -64, 2**70, None, 1])


def _fact(header: Any, body: bytearray, chance: random.Random) -> None:
    facts = header["facts"]
    odd: object = chance.choice([None, -1, 10**30, "", [], {}, [[]], "sift", 2**31, 1.5, True])
    if chance.random() < 0.5 and facts.get("segments") and isinstance(facts["segments"], list):
        segment = chance.choice(facts["segments"])
        if isinstance(segment, dict):
            segment[chance.choice(["first", "end", "relaxed", "saved"])] = odd
    else:
        facts[chance.choice(list(facts) or ["engine"])] = odd


def _cut(header: Any, body: bytearray, chance: random.Random) -> None:
    del body[chance.randrange(len(body) + 1) :]


def use(path: Path, documents: list[bytes]) -> str:
    """Loads a file and asks it all there is to ask. Returns what came of it."""
    try:
        matcher = xsift.Matcher.load(path)
    except xsift.XsiftError:
        return "refused"
    ids: list[str] = []
    outcome = "answered"
    questions: list[Callable[[], object]] = [
        lambda: ids.extend(matcher.row_ids.to_pylist()),
        lambda: [list(match.ids) for match in matcher.match_many(documents)],
        *(lambda xml=xml: matcher.match(xml) for xml in documents),
        *(lambda xml=xml: matcher.select(xml, failures={}) for xml in documents),
        *(lambda xml=xml: matcher.tuples(xml, limit=50, failures={}) for xml in documents),
        *(lambda id=f"s{n}": (matcher.explain(documents[0], id), matcher.report(id)) for n in range(30)),
        lambda: matcher._plan.broad_rows(),
        lambda: matcher.save(path),
    ]
    for ask in questions:
        try:
            ask()
        except xsift.XsiftError:
            continue  # an answer too: such as that an id was removed
        except Exception:  # whatever it is, it is no crash
            outcome = "failed"
    return outcome


def run(seed: int, *, number: int = 0, seconds: float = 0.0) -> dict[str, int]:
    """Goes on until so many files were tried, or the time is up. Returns what came of them."""
    outcomes = {"refused": 0, "answered": 0, "failed": 0}
    chance = random.Random(seed)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "it.xsift"
        for step in itertools.count():
            if (number and step >= number) or (seconds and time.monotonic() - started > seconds):
                break
            if step % 50 == 0:
                a_matcher(chance, *chance.choice(ENGINES)).save(path)
                data = path.read_bytes()
                documents = [random_xml(chance).encode() for _ in range(3)]
            it = random.Random(f"{seed} {step}")
            print(f"seed {seed} step {step}", file=sys.stderr, flush=True)
            path.write_bytes(mutated(data, it))
            outcomes[use(path, documents)] += 1
    return outcomes


def test_crafted_files_never_crash() -> None:
    for seed in range(max(1, NUMBER // 400)):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", __name__, "--seed", str(seed), "--number", str(min(NUMBER, 400))],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{done.returncode}\n{done.stderr[-3000:]}"
        outcomes = json.loads(done.stdout)
        assert outcomes["refused"] > NUMBER // 10
        assert outcomes["answered"] > NUMBER // 20


def test_saved_files_do_not_depend_on_who_saves() -> None:
    """Hash tables are salted in memory, not in files."""
    command = (
        "import random, sys; from tests.matching.test_saved_files import a_matcher\n"
        "a_matcher(random.Random(3)).save(sys.argv[1])"
    )
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in "abc"]
        for file in files[:2]:
            subprocess.run([sys.executable, "-c", command, str(file)], check=True)
        loaded = xsift.Matcher.load(files[0])
        loaded.save(files[2])
        contents = [file.read_bytes() for file in files]
    assert contents[0] == contents[1]
    assert contents[0] == contents[2]


@pytest.mark.parametrize("engine", ["sift", "yfilter"])
def test_a_file_that_is_not_touched_loads(engine: str, tmp_path: Path) -> None:
    chance = random.Random(engine)
    matcher = a_matcher(chance, engine)
    matcher.save(tmp_path / "it.xsift")
    length = struct.unpack_from("<Q", (tmp_path / "it.xsift").read_bytes(), len(MAGIC))[0]
    data = (tmp_path / "it.xsift").read_bytes()
    again = with_checksum(data[BODY : BODY + length], data[_aligned(BODY + length) :])
    assert again == data
    loaded = xsift.Matcher.load(tmp_path / "it.xsift")
    for _ in range(20):
        xml = random_xml(chance).encode()
        assert loaded.match(xml) == matcher.match(xml)
        assert np.array_equal(loaded._plan.broad_rows(), matcher._plan.broad_rows())


def test_what_is_no_file_is_left_alone(tmp_path: Path) -> None:
    """A new file takes the place of an old one; of a pipe or a device it would be a loss for everybody."""
    matcher = xsift.Subscriptions().matcher()
    os.mkfifo(tmp_path / "pipe")
    for name in (tmp_path / "pipe", tmp_path):
        with pytest.raises(OSError, match="it is no file"):
            matcher.save(name)
    assert (tmp_path / "pipe").is_fifo()
    (tmp_path / "link.xsift").symlink_to("current.xsift")
    matcher.save(tmp_path / "link.xsift")
    assert (tmp_path / "link.xsift").is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["current.xsift", "link.xsift", "pipe"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--number", type=int, default=0)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    arguments = parser.parse_args()
    print(json.dumps(run(arguments.seed, number=arguments.number, seconds=arguments.seconds)))
