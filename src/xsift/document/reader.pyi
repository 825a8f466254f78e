from os import PathLike
from typing import TypeAlias

from typing_extensions import Buffer

from xsift.document.document import Readable
from xsift.document.events import EventSource, RecordedEvents
from xsift.document.index import DocumentIndex
from xsift.document.limits import Limits
from xsift.document.names import ElementNames

_Source: TypeAlias = Buffer | str | PathLike[str] | Readable

class Reader(EventSource):
    @property
    def index(self) -> DocumentIndex: ...
    @property
    def limits(self) -> Limits: ...
    @property
    def keeps_names(self) -> bool: ...
    @property
    def names(self) -> ElementNames | None: ...
    def __init__(
        self,
        index: DocumentIndex,
        *,
        limits: Limits | None = None,
        positions: bool = False,
        keep_names: bool = False,
        scanner: bool = True,
    ) -> None: ...
    def open(self, source: _Source, *, encoding: str | None = None) -> Reader: ...
    def close(self) -> None: ...
    def read(self, source: _Source, *, encoding: str | None = None) -> RecordedEvents: ...
    def chunk_of_events(self) -> list[int]: ...
    def finish(self, *, validate: bool = True) -> None: ...

def reading_totals() -> tuple[int, int, int, list[int]]: ...
