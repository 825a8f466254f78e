"""How a subscription is evaluated, and how far it got in a document, step by step: what `explain` shows."""

from __future__ import annotations

from xsift.engines.pattern_evaluation import PatternEvaluation
from xsift.matching.evaluation import Decider, DocumentViews
from xsift.matching.namespace_hints import NamespaceHints
from xsift.matching.results import Explanation, Node, StepReport, SubscriptionReport
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
    rows: Rows, row: int, symbols: Symbols, views: DocumentViews, decider: Decider, selector: Selector, steps: int
) -> Explanation:
    """Why a row matched a document, or where it stopped."""
    meaning = rows.compiled(row, symbols)
    evaluations = [PatternEvaluation(pattern, views.elements, steps) for pattern in meaning.patterns]
    names = NamespaceHints(views.elements, symbols)
    patterns = [
        (str(pattern), _reports(pattern, evaluation, names))
        for pattern, evaluation in zip(meaning.patterns, evaluations, strict=True)
    ]
    passed = meaning.always or any(evaluation.matches() for evaluation in evaluations)
    evaluated = None
    if passed and not meaning.exact:
        passed = evaluated = decider.holds(row, views)
    nodes: list[Node] = []
    if passed:
        found, failed = selector.select([row], views)
        if row in failed:
            raise failed[row]
        nodes = found[row]
    residual = "" if meaning.exact else meaning.residual
    return Explanation(rows.id(row), rows.text(row), passed, patterns, evaluated, residual, nodes)


def _reports(pattern: Pattern, evaluation: PatternEvaluation, names: NamespaceHints) -> list[StepReport]:
    """How far each step got."""
    reports: list[StepReport] = []
    depths: list[int] = []
    for (parent, axis, symbol, is_condition), (found, satisfied) in zip(
        pattern.steps, evaluation.reached(), strict=True
    ):
        depths.append(depths[parent] + 1 if parent >= 0 else 0)
        name = pattern.symbols.text(symbol)
        text = f"[{name}]" if is_condition else ("//" if axis != CHILD else "/") + name
        hint = "" if found or is_condition else names.of(symbol)
        reports.append(StepReport(text, depths[-1], found, satisfied, hint))
    return reports
