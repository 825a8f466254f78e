from collections.abc import Mapping
from typing import final

from xsift.xpath.meaning import Meaning
from xsift.xpath.pattern import Pattern
from xsift.xpath.symbols import Symbols

@final
class Compiler:
    symbols: Symbols
    def __init__(self, symbols: Symbols, *, namespaces: Mapping[str, str] | None = None) -> None: ...
    def compile(self, text: str | bytes, *, ordered: bool = False) -> Meaning: ...

def compile(
    text: str | bytes, symbols: Symbols, *, namespaces: Mapping[str, str] | None = None, ordered: bool = False
) -> Meaning: ...
def patterns(
    text: str | bytes, symbols: Symbols, *, namespaces: Mapping[str, str] | None = None, ordered: bool = False
) -> list[Pattern]: ...
