"""How far a pattern got in a document, step by step: what `Matcher.explain` shows."""

from __future__ import annotations

from xsift.document import DocumentTree
from xsift.engines.evaluation import Evaluation
from xsift.matching.results import StepReport
from xsift.xpath.pattern import Pattern

__all__ = ["explain_pattern"]

CHILD = 0


def explain_pattern(pattern: Pattern, tree: DocumentTree) -> list[StepReport]:
    """For each step, how many elements are where it wants them, and how many of those have all that it asks for
    below.

    Elements that do not have it still count as found for the steps below, so that the first step with nothing
    satisfied, from the top, says what is missing.
    """
    evaluation = Evaluation(pattern, tree)
    reports: list[StepReport] = []
    found: list[set[int]] = []
    depths: list[int] = []
    for step, (parent, axis, symbol, is_condition) in enumerate(pattern.steps):
        depths.append(depths[parent] + 1 if parent >= 0 else 0)
        slash = "//" if axis != CHILD else "/"
        if is_condition:
            found.append(set())
            holding = {element for element in found[parent] if symbol in tree.conditions_of(element)}
            text = f"[{pattern.symbols.text(symbol)}]"
            reports.append(StepReport(text, depths[step], len(found[parent]), len(holding)))
            continue
        here = {element for element in range(1, len(tree) + 1) if symbol in (0, tree.symbol(element))}
        if parent >= 0:
            here = {element for element in here if _is_below(tree, element, found[parent], axis)}
        elif axis == CHILD:
            here &= {1}
        found.append(here)
        satisfied = here & set(evaluation.satisfying(step))
        reports.append(StepReport(slash + pattern.symbols.text(symbol), depths[step], len(here), len(satisfied)))
    return reports


def _is_below(tree: DocumentTree, element: int, above: set[int], axis: int) -> bool:
    parent = tree.parent(element)
    if axis == CHILD:
        return parent in above
    while parent:
        if parent in above:
            return True
        parent = tree.parent(parent)
    return False
