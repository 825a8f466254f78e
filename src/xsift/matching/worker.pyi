from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from xsift.document import ConditionIndex, Reader
from xsift.engines.base import Engine
from xsift.errors import DocumentError
from xsift.matching.rows import Rows
from xsift.xpath.symbols import Symbols

Found = tuple[
    npt.NDArray[np.int32],
    npt.NDArray[np.int64],
    npt.NDArray[np.int32],
    npt.NDArray[np.int64],
    dict[int, DocumentError],
]

class Segment:
    engine: Engine
    def __len__(self) -> int: ...
    def saved(self) -> dict[str, npt.NDArray[Any]] | None: ...
    @staticmethod
    def restored(engine: Engine, arrays: Mapping[str, npt.NDArray[Any]]) -> Segment: ...

class SegmentBuilder:
    conditions: ConditionIndex
    def __init__(self, engine: Engine, rows: Rows, symbols: Symbols) -> None: ...
    def add_rows(self, first: int, end: int) -> list[int]: ...
    def add_pattern(self, row: int, key: bytes) -> str: ...
    def asked(self) -> npt.NDArray[np.int32]: ...
    def finish(self) -> Segment: ...

class Plan:
    segments: tuple[Segment, ...]
    native: bool
    kinds_count: int
    row_count: int
    verifies: bool
    def __init__(
        self,
        segments: Iterable[Segment],
        kinds: npt.NDArray[np.uint8],
        always: npt.NDArray[np.int32],
        validate: bool = True,
    ) -> None: ...
    def kind(self, row: int) -> int: ...
    def removed_rows(self, number: int) -> npt.NDArray[np.uint8]: ...

class Worker:
    plan: Plan
    reader: Reader
    parse_seconds: float
    match_seconds: float
    def __init__(self, plan: Plan, reader: Reader) -> None: ...
    def match(
        self, source: Any, *, encoding: str | None = None
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]: ...
    def match_batch(self, sources: Sequence[Any]) -> Found: ...
    def match_buffers(self, number: int, offsets: int, wide: bool, data: int, validity: int, shift: int) -> Found: ...
