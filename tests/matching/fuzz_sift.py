"""sift beside the reference, for as long as you like: `python -m tests.matching.fuzz_sift --seconds 3600`.

Three loops take turns. One has patterns and recorded events, recursive and deep (tests/engines/recursive.py). Another
has subscriptions with conditions of every kind and XML documents, so that the engine guides the reader: whole and in
pieces, read by the scanner and by expat, with documents that break off in between, while subscriptions come and go.
The third has documents that come again and again, and others that differ from them a little. Caches are of size 0,
tiny, or as usual; what documents lead to is remembered always, never, or as it pays.
"""

from __future__ import annotations

import argparse
import io
import random
import time
from contextlib import suppress
from typing import Any

import xsift
from tests.engines.recursive import recursive_differences
from xsift.engines import create

CACHES = [0, 0, 3_000, 30_000, 1 << 27]
WAYS = ["auto", "always", "never"]
VALUES = ["1", "2", "10", "a", "one", "two", " one two ", "x & y", "", "12345678901234567"]
CONDITIONS = [
    "@{a}",
    "@{a}='{v}'",
    "@{a}!='{v}'",
    "@{a}={n}",
    "@{a}>{n}",
    "@{a}<={n}",
    "not(@{a})",
    "not(@{a}='{v}')",
    "contains(@{a},'{s}')",
    "starts-with(@{a},'{s}')",
    "string-length(@{a})={n}",
    "normalize-space(@{a})='{v}'",
    "translate(@{a},'on','NO')='{u}'",
    "substring(@{a},2)='{s}'",
    "@*='{v}'",
    "text()='{v}'",
    "text()>{n}",
    "contains(text(),'{s}')",
    ".='{v}'",
    "contains(.,'{s}')",
    "normalize-space()='{v}'",
    "not(text()='{v}')",
    "string-length(.)>{n}",
    "concat(@{a},'!')='{v}!'",
]


class Pieces(io.RawIOBase):
    """A file that gives few bytes at a time."""

    def __init__(self, data: bytes, size: int) -> None:
        self.data, self.size, self.place = data, size, 0

    def read(self, size: int = -1) -> bytes:
        piece = self.data[self.place : self.place + self.size]
        self.place += len(piece)
        return piece


class Language:
    """The odds of one run: runs differ in kind, not only in detail."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.names = rng.choice(["ab", "abc", "abcdef"])
        self.attributes = rng.choice(["x", "xy", ["x", "y", "a-rather-long-attribute-name", "p:x"]])
        self.values = rng.sample(VALUES, rng.randrange(2, len(VALUES)))
        self.condition = rng.choice([0.1, 0.4, 0.7])
        self.branching = rng.choice([0.0, 0.2, 0.5])
        self.star = rng.choice([0.0, 0.2])
        self.recursion = rng.choice([3, 5, 9])

    def a_condition(self) -> str:
        value = self.rng.choice(self.values)
        return self.rng.choice(CONDITIONS).format(
            a=self.rng.choice(list(self.attributes)),
            v=value,
            n=self.rng.choice(["0", "1", "2", "3", "10", "-1"]),
            s=value[:2] or "n",
            u=value.translate({ord("o"): "N", ord("n"): "O"}),
        )

    def path(self, depth: int = 0) -> str:
        steps = []
        for number in range(self.rng.randrange(1, 4)):
            step = "*" if self.rng.random() < self.star else self.rng.choice(self.names)
            while self.rng.random() < self.condition:
                step += f"[{self.a_condition()}]"
            while depth < 2 and self.rng.random() < self.branching:
                step += f"[{self.rng.choice(['', './/'])}{self.path(depth + 1)}]"
            steps.append((self.rng.choice(["/", "/", "//"]) if number else "") + step)
        return "".join(steps)

    def expression(self) -> str:
        return self.rng.choice(["/", "//"]) + self.path()

    def element(self, depth: int = 0) -> str:
        rng = self.rng
        attributes = "".join(
            f' {name}="{self.escaped(rng.choice(self.values))}"'
            for name in [*self.attributes, "unasked"]
            if rng.random() < 0.5
        )
        inner = "".join(
            self.element(depth + 1)
            if rng.random() < 0.6
            else rng.choice([self.escaped(rng.choice(self.values)), "<!-- -->", "<?p?>", "<![CDATA[one]]>"])
            for _ in range(rng.randrange(5) if depth < self.recursion else 0)
        )
        name = rng.choice(self.names + "z")
        return f"<{name}{attributes}>{inner}</{name}>" if inner or rng.random() < 0.5 else f"<{name}{attributes}/>"

    def escaped(self, value: str) -> str:
        return value.replace("&", "&amp;") if self.rng.random() < 0.7 else value.replace("&", "&#38;")

    def document(self) -> bytes:
        text = f"<a xmlns:p='urn:p'>{self.element()}{self.element()}</a>"
        kind = self.rng.random()
        if kind < 0.1:
            return text.encode("utf-16")
        if kind < 0.2:
            return b"<!DOCTYPE a [<!ENTITY e 'one'>]>" + text.replace("one", "&e;").encode()
        if kind < 0.3:  # right, and left to expat when the scanner comes to it
            odd = "<b xmlns:xml='http://www.w3.org/XML/1998/namespace'/></a>"
            return (text.removesuffix("</a>") + odd).encode()
        return text.encode()


def changed(subscriptions: xsift.Subscriptions, language: Language, rng: random.Random, number: int) -> int:
    """Adds and removes subscriptions; returns how many were added since ever."""
    for _ in range(rng.randrange(1, 30)):
        subscriptions.add(f"s{number}", language.expression())
        number += 1
    for id in [id for id in (f"s{i}" for i in range(number)) if id in subscriptions and rng.random() < 0.3]:
        subscriptions.remove(id)
    return number


def guided_differences(rng: random.Random, rounds: int) -> list[str]:
    """One set, changed round by round; a line for each answer that differs from the reference's."""
    language = Language(rng)
    subscriptions = xsift.Subscriptions(namespaces={"p": "urn:p"})
    options: dict[str, Any] = {"cache_bytes": rng.choice(CACHES), "remember": rng.choice(WAYS)}
    found: list[str] = []
    number = 0
    for _ in range(rounds):
        number = changed(subscriptions, language, rng, number)
        reference = subscriptions.matcher("reference")
        matcher = subscriptions.matcher("sift", **options)
        for _ in range(6):
            document = language.document()
            expected = reference.match(document)
            for way in (document, Pieces(document, rng.choice([1, 7, 100, 3000]))):
                actual = matcher.match(way)
                for id in sorted(set(expected) ^ set(actual)):
                    verb = "misses" if id in expected else "invents"
                    found.append(f"{verb} {subscriptions.xpath(id)} on {document!r}")
            if rng.random() < 0.3:
                with suppress(xsift.DocumentError):
                    matcher.match(document[: rng.randrange(len(document))])
    return sorted(found, key=len)


def repeated_differences(rng: random.Random) -> list[str]:
    """One set and a few documents, again and again in any order; some are like others but for a part."""
    language = Language(rng)
    subscriptions = xsift.Subscriptions(namespaces={"p": "urn:p"})
    for number in range(rng.choice([3, 30, 150])):
        subscriptions.add(str(number), language.expression())
    reference = subscriptions.matcher("reference")
    options: dict[str, Any] = {"cache_bytes": rng.choice(CACHES[2:]), "remember": rng.choice(["auto", "never"])}
    matcher = subscriptions.matcher("sift", **options)
    parts = [language.element(rng.choice([0, language.recursion - 1])) for _ in range(rng.choice([3, 6, 10]))]
    attributes = rng.choice(["", "", " x='1'", " x='one' y='2'"])
    documents = []
    for _ in range(rng.choice([1, 4, 12])):
        inner = "".join(rng.choices(parts, k=rng.choice([1, 2, 2, 5])))
        documents.append(f"<a xmlns:p='urn:p'{attributes}>{inner}</a>".encode())
    expected = {document: set(reference.match(document)) for document in documents}
    found: list[str] = []
    for _ in range(150):
        document = rng.choice(documents)
        for id in expected[document] ^ set(matcher.match(document)):
            verb = "misses" if id in expected[document] else "invents"
            found.append(f"{verb} {subscriptions.xpath(id)} on {document!r}")
        if rng.random() < 0.1:
            with suppress(xsift.DocumentError):
                matcher.match(document[: rng.randrange(len(document))])
    return sorted(found, key=len)


def event_differences(rng: random.Random) -> list[str]:
    engine = create("sift", cache_bytes=rng.choice(CACHES), remember=rng.choice(WAYS))
    return recursive_differences(engine, rng, 8, linear=rng.random() < 0.2, ordered=rng.random() < 0.4)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=float, default=60)
    arguments.add_argument("--seed", type=int, default=0)
    given = arguments.parse_args()
    end = time.monotonic() + given.seconds
    seed = given.seed
    while time.monotonic() < end:
        rng = random.Random(seed)
        for differences in (guided_differences(rng, 5), event_differences(rng), repeated_differences(rng)):
            if differences:
                raise SystemExit(f"seed {seed}: {len(differences)} differences, the shortest:\n{differences[0]}")
        seed += 1
    print(f"{seed - given.seed} runs, no difference")


if __name__ == "__main__":
    main()
