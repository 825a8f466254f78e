from xsift.engines.base import Engine

class XFilter(Engine):
    def query_index(self) -> dict[int, tuple[list[tuple[int, int]], list[tuple[int, int]]]]: ...
