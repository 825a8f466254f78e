"""Agreement: before anything is timed, all series of a point must give the same answer.

Where they differ, the reference engine decides who is wrong, on the pairs of pattern and document in question only.
It also goes through a sample of pairs on which all agree, since engines that share code can share a fault.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np

from xsift.engines.reference import Evaluation, Tree
from xsift.experiments.workloads import Indices, Prepared

__all__ = ["Arbiter", "order_dependent"]

SAMPLE = 200  # undisputed pairs that the reference engine looks at, over all documents
DISPUTED = 50  # disputed pairs that it looks at, a document


class Arbiter:
    """Collects the answers of the series that have one workload, and says which of them are wrong."""

    def __init__(self, prepared: Prepared) -> None:
        self.prepared = prepared
        self.answers: dict[str, dict[int, Indices]] = {}  # label -> document -> the patterns that it matches

    def objections(self) -> dict[str, str]:
        """Of each series whose answer is wrong: what is wrong with it."""
        found: dict[str, str] = {}
        for document in range(len(self.prepared.documents)):
            answers = {
                label: set(answer[document].tolist())
                for label, answer in self.answers.items()
                if document in answer  # who is slow is asked of the first few only, and has fewer rounds
            }
            pairs = self._pairs(document, list(answers.values()))
            if not pairs:
                continue
            tree = Tree(self.prepared.documents[document].events)
            for pattern in pairs:
                right = Evaluation(self.prepared.patterns[pattern], tree).matches()
                for label, answer in answers.items():
                    if right != (pattern in answer):
                        found.setdefault(label, self._text(right, document, pattern))
        return found

    def _pairs(self, document: int, answers: list[set[int]]) -> list[int]:
        """The patterns to look at for a document: those in dispute, and a sample of the others."""
        if not answers:
            return []
        anyone, everyone = set(answers[0]), set(answers[0])
        for answer in answers[1:]:
            anyone |= answer
            everyone &= answer
        disputed = sorted(anyone - everyone)
        rng = random.Random(document)
        each = max(1, SAMPLE // 2 // len(self.prepared.documents))
        sample = rng.sample(range(len(self.prepared.patterns)), min(each, len(self.prepared.patterns)))
        return disputed[:DISPUTED] + rng.sample(sorted(anyone), min(each, len(anyone))) + sample

    def _text(self, right: bool, document: int, pattern: int) -> str:
        verb = "misses" if right else "invents"
        return f"wrong answer: it {verb} {self.prepared.examples[pattern]!r} on document {document} of the workload"


def order_dependent(
    unordered: Prepared, ordered: Prepared, answers: Callable[[Prepared], Sequence[Indices]]
) -> Indices:
    """The subscriptions that some document matches unordered but not ordered. Only what matches is asked in order."""
    free = [unordered.delivered(answer) for answer in answers(unordered)]
    matched = np.unique(np.concatenate([np.empty(0, dtype=np.int32), *free]))
    few = ordered.only(matched)
    strict = [matched[few.delivered(answer)] for answer in answers(few)]
    return np.unique(np.concatenate([np.empty(0, dtype=np.int32), *map(np.setdiff1d, free, strict)]))
