from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from xsift.document import Document, Reader, RecordedEvents
from xsift.errors import DocumentError
from xsift.matching.segment import Segment

Found = tuple[
    npt.NDArray[np.int32],
    npt.NDArray[np.int64],
    npt.NDArray[np.int32],
    npt.NDArray[np.int64],
    dict[int, DocumentError],
]

class RowKind(IntEnum):
    DELIVER = 0
    EVALUATE = 1
    REMOVED = 2

class Plan:
    @property
    def segments(self) -> tuple[Segment, ...]: ...
    @property
    def live_rows(self) -> int: ...
    @property
    def evaluates(self) -> bool: ...
    @property
    def native(self) -> bool: ...
    @property
    def row_count(self) -> int: ...
    def __init__(
        self,
        segments: Iterable[Segment],
        kinds: npt.NDArray[np.uint8],
        always: npt.NDArray[np.int32],
        validate: bool = True,
        find_broad: Callable[[], npt.NDArray[np.uint8]] | None = None,
    ) -> None: ...
    def kind(self, row: int) -> RowKind: ...
    def broad_rows(self) -> npt.NDArray[np.uint8]: ...
    def removed_rows(self) -> npt.NDArray[np.uint8]: ...

class Worker:
    @property
    def plan(self) -> Plan: ...
    @property
    def reader(self) -> Reader: ...
    def __init__(self, plan: Plan, reader: Reader) -> None: ...
    def match(self, document: Document) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]: ...
    def match_events(self, events: RecordedEvents) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]: ...
    def match_batch(self, documents: Sequence[bytes | Document | DocumentError]) -> Found: ...
    def match_buffers(
        self, number: int, offsets: int, wide: bool, text: bool, data: int, validity: int, shift: int
    ) -> Found: ...
