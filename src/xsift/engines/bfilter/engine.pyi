from collections.abc import Iterator

from xsift.document.events import EventSource, RecordedEvents
from xsift.engines.base import Engine
from xsift.engines.bfilter.index import QueryIndexTree
from xsift.engines.bfilter.trace import StackSnapshot, SubQuery
from xsift.xpath.pattern import Pattern

COUNTER_NAMES: tuple[str, ...]

class BFilter(Engine):
    @property
    def index(self) -> QueryIndexTree: ...
    @property
    def held_keys(self) -> list[int]: ...
    def pattern(self, key: int) -> Pattern: ...
    def select(self, document: EventSource, key: int, output: int) -> list[int]: ...
    def sub_queries(self, key: int) -> list[SubQuery]: ...
    def trace(self, document: RecordedEvents) -> Iterator[StackSnapshot]: ...
    def watch(
        self, document: RecordedEvents
    ) -> Iterator[
        tuple[list[int], list[list[int]], list[int], list[tuple[int, int, int, bool]], list[int], list[int]]
    ]: ...
