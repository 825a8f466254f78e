"""Remedies: what people write who think of another language, and how XPath 1.0 says it.

Most expressions that cannot be used are right in XPath 2.0, in a programming language, or in a word processor. The
error is where the parser stumbles; what stands there tells what was meant.
"""

from __future__ import annotations

import re

__all__ = ["remedy"]

ALPHABET = "'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz'"
OPERATORS = {"eq": "=", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "is": "="}
FUNCTIONS = {
    "lower-case": f"XPath 1.0 says it so: translate(…, {ALPHABET})",
    "upper-case": "XPath 1.0 says it so: translate(…, 'abcdefghijklmnopqrstuvwxyz', 'ABCDEFGHIJKLMNOPQRSTUVWXYZ')",
    "matches": "XPath 1.0 has no regular expressions: use contains() or starts-with()",
    "replace": "XPath 1.0 has no regular expressions: translate() replaces single characters",
    "tokenize": "XPath 1.0 cannot split: for a word in a list, contains(concat(' ', …, ' '), ' word ')",
    "ends-with": "XPath 1.0 says it so: substring(…, string-length(…) - string-length('x') + 1) = 'x'",
    "exists": "a path in a predicate says that by itself: [b]",
    "empty": "XPath 1.0 says it so: not(b)",
    "string-join": "XPath 1.0 joins a fixed number of strings: concat(a, ', ', b)",
    "avg": "XPath 1.0 says it so: sum(…) div count(…)",
    "min": "XPath 1.0 says it so: b[not(../b < .)]",
    "max": "XPath 1.0 says it so: b[not(../b > .)]",
    "abs": "compare both signs: [. > 5 or . < -5]",
    "if": "XPath 1.0 has no if: write the condition as a predicate",
    "element": "XPath 1.0 has no element(): write the name, or *",
}
WORD = re.compile(r"[A-Za-z][A-Za-z-]*")
QUOTES = "‘’“”„‚«»"


def remedy(text: str, column: int) -> str:
    """What to write instead, by what stands at a column (from 1) of an expression; "" if that says nothing."""
    before, after = text[: column - 1], text[column - 1 :]
    found = WORD.match(after)
    word = found[0] if found else ""
    if after.startswith("&&") or word in ("AND", "And"):
        return "XPath writes `and`"
    if (before.endswith("|") and after.startswith("|")) or word in ("OR", "Or"):
        return "XPath writes `or`"
    if before.endswith("=") and after.startswith("="):
        return "XPath compares with a single ="
    if before.endswith("<") and after.startswith(">"):
        return "XPath writes !="
    if after.startswith("!") and not after.startswith("!="):
        return "XPath writes not(…)"
    if before.endswith("*") and (name := re.match(r":([\w.-]+)", after)):
        return f"XPath 1.0 has no *:{name[1]}; write *[local-name() = '{name[1]}']"
    if after[:1] and after[0] in QUOTES:
        return "write straight quotes, ' or \""
    if before.endswith("Q") and after.startswith("{"):
        return "XPath 1.0 has no Q{…}: bind a prefix to the namespace, and write prefix:name"
    if word in OPERATORS:
        return f"XPath 1.0 writes {OPERATORS[word]}"
    return FUNCTIONS.get(word, "")
