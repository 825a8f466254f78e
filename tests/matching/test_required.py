"""What a document must have: every key of a row holds in every document that the row matches."""

from __future__ import annotations

import xsift
from xsift.matching.required import key_expression, required_keys
from xsift.workload import DocumentGenerator, DocumentParameters, SubscriptionGenerator, SubscriptionParameters


def keys_of(made: xsift.Subscriptions, *, values: bool = True) -> list[set[str]]:
    found = required_keys(made, values=values)
    sets: list[set[str]] = [set() for _ in range(len(made))]
    for row, place in zip(found.rows.tolist(), found.places.tolist(), strict=True):
        sets[row].add(found.keys[place])
    return sets


def test_keys() -> None:
    texts = {
        "/nitf/body//hl1[contains(., 'Spark')]/@id": {"nitf", "body", "hl1", "nitf/body"},
        "//n:a[@b='c' and @d>3]/text()": {"{urn:n/x}a", "@b = 'c'"},
        "//a | //b": set(),
        "//a[b or c]": set(),
        "//a[not(b)]/c": {"a", "c", "a/c"},
        "//*": set(),
        "//p[@type='x']/n:q": {"p", "{urn:n/x}q", "@type = 'x'"},
        "true()": set(),
        "//a[position()=2]": {"a"},
        "//a[@n = 3]": {"a", "@n = 3"},
        "//a[@n != 3]": {"a"},
        "//a[@n = 1 div 0]": {"a"},
        "//a[@n = 0.804765]": {"a"},  # 0.80476499999999995 is another number to libxml2
        "//a/braces:b": {"a"},
        "//a[not(@n = 3)]": {"a"},
    }
    made = xsift.Subscriptions(namespaces={"n": "urn:n/x", "braces": "urn:{n}/x"})
    made.add_many(list(zip(map(str, range(len(texts))), texts, strict=True)))
    assert keys_of(made) == list(texts.values())
    assert keys_of(made, values=False)[6] == {"p", "{urn:n/x}q"}
    prefixes: dict[str, str] = {}
    assert key_expression("{urn:n/x}a/{urn:m}b", prefixes) == "//n0:a/n1:b"
    assert key_expression("@b = 'c'", prefixes) == "//*[@b = 'c']"
    assert prefixes == {"n0": "urn:n/x", "n1": "urn:m"}


def test_a_document_that_matches_has_the_keys() -> None:
    wanted = SubscriptionParameters(dtd="nitf", number=2000, nested_paths=1, conditions=1, seed=5)
    texts = list(dict.fromkeys(SubscriptionGenerator(wanted)))
    made = xsift.Subscriptions()
    made.add_many([(str(number), text) for number, text in enumerate(texts)])
    sets = keys_of(made)
    distinct = sorted(set().union(*sets))
    prefixes: dict[str, str] = {}
    keys = xsift.Subscriptions(namespaces=prefixes)
    keys.add_many([(key, key_expression(key, prefixes)) for key in distinct])
    matcher, key_matcher = made.matcher(), keys.matcher()
    matched = 0
    for document in DocumentGenerator(DocumentParameters(dtd="nitf", number=60, size_bytes=3000)):
        has = set(key_matcher.match(document))
        for id in matcher.match(document):
            matched += 1
            assert sets[int(id)] <= has
    assert matched > 100
    assert sum(not them for them in sets) < len(sets) / 10
