"""The XPath room: the text of a subscription to patterns, or to an error that says what is wrong and where.

What it offers:

    parse("//a[b]")                      -> Expression; to_text() prints it again
    compile("//a[b]", Symbols())         -> Compiled: patterns, whether they are exact, what is left to verify
    Compiler(symbols, namespaces={...})  the same for many subscriptions
    patterns("//a[b]", symbols)          -> the patterns alone
"""

from xsift.xpath.compiled import Compiled, Selection
from xsift.xpath.compiler import Compiler, compile, patterns
from xsift.xpath.expression import Expression, parse
from xsift.xpath.pattern import Pattern
from xsift.xpath.printer import to_text
from xsift.xpath.symbols import Symbols

__all__ = [
    "Compiled",
    "Compiler",
    "Expression",
    "Pattern",
    "Selection",
    "Symbols",
    "compile",
    "parse",
    "patterns",
    "to_text",
]
