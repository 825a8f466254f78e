from xsift.engines.paths import PathEngine

class XFilter(PathEngine):
    def query_index(self) -> dict[int, tuple[list[tuple[int, int]], list[tuple[int, int]]]]: ...
