"""What one thread needs to match documents and to look at them more closely. A matcher keeps those that are idle."""

from __future__ import annotations

from xsift.document import Document, DocumentIndex, DocumentTree, Limits, Reader, RecordedEvents
from xsift.matching.evaluation import DocumentViews
from xsift.matching.row_evaluator import RowEvaluator
from xsift.matching.worker import Worker

__all__ = ["Desk"]


class Desk:
    """What one thread works with: a worker, an evaluator, and a reader that keeps all that is needed to look
    closer.
    """

    def __init__(self, worker: Worker, evaluator: RowEvaluator, index: DocumentIndex, limits: Limits) -> None:
        self.worker = worker
        self.evaluator = evaluator
        self._index = index
        self._limits = limits
        self._reader: Reader | None = None

    def events(self, document: Document) -> RecordedEvents:
        """The events of a document, with positions and names."""
        if self._reader is None:
            self._reader = Reader(self._index, limits=self._limits, positions=True, keep_names=True)
        return self._reader.read(document.source, encoding=document.encoding)

    def views(self, document: Document) -> DocumentViews:
        """A document for whoever looks closer."""
        return DocumentViews(document, self.evaluator, lambda it: DocumentTree(self.events(it)))
