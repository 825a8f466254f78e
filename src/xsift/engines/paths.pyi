from xsift.engines.base import Engine

class PathEngine(Engine):
    note_limit: int
