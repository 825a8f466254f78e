from xsift.document.events import EventSource
from xsift.engines.paths import PathEngine
from xsift.xpath.symbols import Symbols

class IndexFilter(PathEngine):
    def prefix_tree(self, symbols: Symbols) -> dict[str, int]: ...
    def index_streams(self, document: EventSource, symbols: Symbols) -> dict[str, list[tuple[int, int, int]]]: ...
