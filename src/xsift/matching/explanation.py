"""How a subscription is evaluated, and how far it got in a document, step by step: what `explain` shows."""

from __future__ import annotations

from xsift.document import DocumentTree
from xsift.engines.evaluation import Evaluation
from xsift.matching.evaluation import Decider, DocumentViews
from xsift.matching.results import Explanation, StepReport, SubscriptionReport
from xsift.matching.rows import Rows
from xsift.matching.selection import Selector
from xsift.xpath.pattern import Pattern
from xsift.xpath.symbols import Symbols

__all__ = ["explain_row", "report_row"]

CHILD = 0


def report_row(rows: Rows, row: int, symbols: Symbols) -> SubscriptionReport:
    """Which part of a row's expression is indexed, and which is evaluated."""
    meaning = rows.compiled(row, symbols)
    return SubscriptionReport(
        id=rows.id(row),
        xpath=rows.text(row),
        ordered=rows.ordered(row),
        patterns=[str(pattern) for pattern in meaning.patterns],
        exact=meaning.exact,
        residual="" if meaning.exact else meaning.residual,
        reason=meaning.reason,
        always=meaning.always,
        never=meaning.never,
    )


def explain_row(
    rows: Rows, row: int, symbols: Symbols, views: DocumentViews, decider: Decider, selector: Selector
) -> Explanation:
    """Why a row matched a document, or where it stopped."""
    meaning = rows.compiled(row, symbols)
    patterns = [(str(pattern), _explain_pattern(pattern, views.elements)) for pattern in meaning.patterns]
    passed = meaning.always or any(Evaluation(pattern, views.elements).matches() for pattern in meaning.patterns)
    evaluated = None
    if passed and not meaning.exact:
        passed = evaluated = decider.holds(row, views)
    nodes = selector.select([row], views)[0].get(row, []) if passed else []
    residual = "" if meaning.exact else meaning.residual
    return Explanation(rows.id(row), rows.text(row), passed, patterns, evaluated, residual, nodes)


def _explain_pattern(pattern: Pattern, tree: DocumentTree) -> list[StepReport]:
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
