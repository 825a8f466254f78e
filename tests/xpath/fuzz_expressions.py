"""Random expressions, and damaged ones: each is compiled, added, matched, selected and explained on random documents.
The only error that may come of it is one that xsift raises on purpose; a crash is what sanitizers are for
(`tools/sanitize .venv --fuzz 60`).

    python -m tests.xpath.fuzz_expressions --seconds 60 [--seed N]
"""

from __future__ import annotations

import argparse
import random
import sys
import time

import xsift
from tests.evaluation.grammar import GrammarMaker
from tests.language import NAMESPACES, ExpressionMaker, random_xml

SIGNS = "/ // . .. @ * [ ] ( ) | + - = != < <= > >= , :: : $ ' \" 1 1e9 0.5 -0 .5 9999999999999999999 a b n:a x"
WORDS = """and or not( div mod text() node() comment() processing-instruction( child:: ancestor:: following:: self::
    id(     count( sum( contains( starts-with( string-length( normalize-space( translate( concat( substring( lang(
    last() position()"""
ODD = ["é", "中", "\U0001f600", "\x00", "\x1f", " ", "\n", "'&'", '"\\"', "[[[[[[[[", "((((((((", "]]]]]]]]]"]
PIECES = [*SIGNS.split(), *WORDS.split(), *ODD]


def soup(chance: random.Random) -> str:
    return "".join(chance.choice(PIECES) + chance.choice(["", "", " "]) for _ in range(chance.randrange(1, 30)))


def damaged(text: str, chance: random.Random) -> str:
    for _ in range(chance.choice([1, 1, 2, 5])):
        at = chance.randrange(len(text) + 1)
        end = min(len(text), at + chance.choice([0, 0, 1, 3, 10]))
        piece = chance.choice(
            ["", chance.choice(PIECES), text[at:end] * chance.choice([2, 50]), chr(chance.randrange(0x3000))]
        )
        text = text[:at] + piece + text[end:]
    return text[:5000]


def expressions(chance: random.Random) -> list[str]:
    maker, grammar = ExpressionMaker(chance, beyond=0.5), GrammarMaker(chance, wrong=0.05)
    made = []
    for _ in range(20):
        kind = chance.random()
        text = soup(chance) if kind < 0.2 else maker.expression() if kind < 0.6 else grammar.expression()
        made.append(text if chance.random() < 0.4 else damaged(text, chance))
    return made


def one_round(chance: random.Random) -> None:
    subscriptions = xsift.Subscriptions(namespaces=NAMESPACES)
    for number, text in enumerate(expressions(chance)):
        try:
            subscriptions.add(f"s{number}", text, ordered=chance.random() < 0.2)
        except xsift.XsiftError as error:
            str(error)
    matcher = subscriptions.matcher(chance.choice(["sift", "sift", "yfilter", "xtrie", "bfilter"]))
    for _ in range(3):
        xml = random_xml(chance).encode()
        matcher.match(xml, failures={})
        matcher.select(xml, failures={})
        matcher.tuples(xml, limit=20, failures={})
    for id in list(subscriptions)[:3]:
        subscriptions.explain(id)
        try:
            str(matcher.explain(xml, id))
        except xsift.SubscriptionError as error:
            if error.code not in ("too-many-steps", "result-too-large"):
                raise


def run(seed: int, *, seconds: float = 0.0, rounds: int = 0) -> int:
    """Goes on until the time is up, or so many rounds are done. Returns how many were."""
    started, done = time.monotonic(), 0
    while (not rounds or done < rounds) and (not seconds or time.monotonic() - started < seconds):
        try:
            one_round(random.Random(f"{seed} {done}"))
        except Exception:
            print(f"seed {seed}, round {done}", file=sys.stderr)
            raise
        done += 1
    return done


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    arguments = parser.parse_args()
    print(f"expressions, seed {arguments.seed}", flush=True)
    print(f"{run(arguments.seed, seconds=arguments.seconds):,} rounds of 20 expressions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
