"""The XPath room: the text of a subscription to patterns, or to an error that says what is wrong and where.

What it offers:

    parse("//a[b]")                      -> Expression; to_text() prints it again
    compile("//a[b]", Symbols())         -> Meaning: patterns, whether they are exact, what is left to evaluate
    Compiler(symbols, namespaces={...})  the same for many subscriptions
    patterns("//a[b]", symbols)          -> the patterns alone
"""

from xsift.xpath.compiler import Compiler, compile, patterns
from xsift.xpath.expression import Expression, parse
from xsift.xpath.meaning import Meaning, Selection
from xsift.xpath.pattern import Pattern
from xsift.xpath.printer import to_text
from xsift.xpath.symbols import Symbols

__all__ = [
    "Compiler",
    "Expression",
    "Meaning",
    "Pattern",
    "Selection",
    "Symbols",
    "compile",
    "parse",
    "patterns",
    "to_text",
]
