"""Evaluation: the part of a subscription that no engine can decide, on the documents that pass the part that one can.

Two kinds of rows need it. An expression of which patterns say only a part (positions, counting, other axes …) has a
program, which is run over the document's nodes (row_evaluator.pyx). An ordered twig on an engine that knows no order
was indexed as if unordered, and is evaluated here on the document's elements. A row that cannot be decided is a
failure of that row alone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from xsift.document import Document, DocumentTree, RecordedEvents
from xsift.engines.pattern_evaluation import PatternEvaluation
from xsift.errors import SubscriptionError, XsiftError
from xsift.matching.row_evaluator import RowEvaluator
from xsift.matching.rows import Rows
from xsift.xpath.symbols import Symbols

__all__ = ["Decider", "DocumentViews"]


class DocumentViews:
    """One document in the forms that evaluation and selection need: its elements, and all its nodes. Each is made
    when it is first asked for."""

    def __init__(
        self, document: Document, evaluator: RowEvaluator, make_elements: Callable[[Document], DocumentTree]
    ) -> None:
        self._document = document
        self._make_elements = make_elements
        self._elements: DocumentTree | None = None
        self.events: RecordedEvents | None = None
        """Its events, if they are at hand."""
        self.evaluator = evaluator
        """Evaluates rows on this document."""
        evaluator.begin(document.source, document.encoding)

    @property
    def document(self) -> Document:
        """The document itself."""
        return self._document

    @property
    def elements(self) -> DocumentTree:
        """The elements, with their positions and names."""
        if self._elements is None:
            self._elements = self._make_elements(self._document)
        return self._elements


class Decider:
    """Decides rows that passed their patterns. One for all threads."""

    def __init__(self, rows: Rows, symbols: Symbols, steps: int) -> None:
        self._rows = rows
        self._symbols = symbols
        self._steps = steps  # what one row may cost: Limits.steps

    def decide(self, rows: npt.NDArray[np.int32], views: DocumentViews) -> tuple[list[int], dict[int, XsiftError]]:
        """Those of the rows that match, and errors of those that cannot be decided."""
        kept, failures, ordered = views.evaluator.decide(rows)
        for row in ordered:
            try:
                if self._in_order(row, views):
                    kept.append(row)
            except SubscriptionError as error:
                failures[row] = error
        return kept, failures

    def holds(self, row: int, views: DocumentViews) -> bool:
        """Whether a row that passed its patterns matches. Raises SubscriptionError if that cannot be decided."""
        return self._in_order(row, views) if self._rows.ordered(row) else views.evaluator.holds(row)

    def _in_order(self, row: int, views: DocumentViews) -> bool:
        patterns = self._rows.compiled(row, self._symbols).patterns
        return any(PatternEvaluation(pattern, views.elements, self._steps).matches() for pattern in patterns)
