from collections.abc import Iterable

from xsift.document.conditions.condition_index import ConditionIndex
from xsift.xpath.symbols import Symbols

class DocumentIndex:
    @property
    def symbols(self) -> Symbols: ...
    @property
    def conditions(self) -> tuple[ConditionIndex, ...]: ...
    def __init__(
        self, symbols: Symbols, conditions: Iterable[ConditionIndex] = (), names: Iterable[int] | None = None
    ) -> None: ...
    def __len__(self) -> int: ...
