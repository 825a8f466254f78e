"""Documents that nobody wrote for a benchmark, and subscriptions made from what is in them.

A generated set asks for what a DTD allows. Here each subscription is taken from an element of some document: its path
from the root, an attribute or a text that it has, a branch that its ancestors have. So it matches at least one
document, and names and values are as skewed as they are in life.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from lxml import etree

WILDCARD_ODDS = DESCENDANT_ODDS = 0.1
LONGEST_VALUE = 40


def subscriptions_from(documents: Sequence[bytes], number: int, kind: str, seed: int = 1) -> list[str]:
    """Up to `number` distinct subscriptions: `paths`, `twigs` (two branches), `attributes` or `texts`."""
    choose = random.Random(seed)
    found: dict[str, None] = {}
    trees = list(_trees(documents))
    for _ in range(20 * number):
        if len(found) >= number or not trees:
            break
        element = choose.choice(choose.choice(trees))
        text = _subscription(element, kind, choose)
        if text:
            found[text] = None
    return list(found)


def _trees(documents: Sequence[bytes]) -> Iterator[list[etree._Element]]:
    """The elements of each document; those in a namespace are left out, with all that is in them."""
    parser = etree.XMLParser(resolve_entities=False, load_dtd=False, no_network=True)
    for document in documents:
        try:
            root = etree.fromstring(document, parser)
        except etree.XMLSyntaxError:
            continue
        elements = [
            e for e in root.iter(etree.Element) if all(isinstance(s.tag, str) and "{" not in s.tag for s in _line(e))
        ]
        if elements:
            yield elements


def _line(element: etree._Element) -> list[etree._Element]:
    """An element and its ancestors, the root first."""
    line = [element, *element.iterancestors()]
    return line[::-1]


def _subscription(element: etree._Element, kind: str, choose: random.Random) -> str:
    line = _line(element)
    predicates: dict[int, str] = {}
    if kind == "attributes":
        places = [i for i, step in enumerate(line) if any("{" not in name for name in step.attrib)]
        if not places:
            return ""
        place = choose.choice(places)
        name = choose.choice([str(name) for name in line[place].attrib if "{" not in name])
        predicates[place] = f"[@{name}={_literal(str(line[place].attrib[name]))}]"
    elif kind == "texts":
        value = (element.text or "").strip()
        if not value:
            return ""
        words = value.split()
        predicates[len(line) - 1] = choose.choice(
            [f"[text()={_literal(element.text or '')}]", f"[contains(., {_literal(choose.choice(words))})]"]
        )
    elif kind == "twigs":
        for _ in range(2):
            place = choose.randrange(len(line))
            below = [e for e in line[place].iterdescendants(etree.Element) if isinstance(e.tag, str)][:200]
            if not below:
                return ""
            branch = _line(choose.choice(below))[place + 1 :]
            predicates[place] = predicates.get(place, "") + f"[{_path(branch, {}, choose).removeprefix('/')}]"
    text = _path(line, predicates, choose)
    return "" if "{" in text or any(len(part) > 4 * LONGEST_VALUE for part in predicates.values()) else text


def _path(line: Sequence[etree._Element], predicates: dict[int, str], choose: random.Random) -> str:
    text = ""
    for place, step in enumerate(line):
        skipped = place and choose.random() < DESCENDANT_ODDS
        wild = choose.random() < WILDCARD_ODDS
        text += ("//" if skipped else "/") + ("*" if wild else str(step.tag)) + predicates.get(place, "")
    return text


def _literal(value: str) -> str:
    value = value[:LONGEST_VALUE] if "\n" not in value else value
    return f"'{value}'" if "'" not in value else f'"{value}"' if '"' not in value else "''"
