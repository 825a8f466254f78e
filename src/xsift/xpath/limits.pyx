"""The limits that a subscription's text is held to: untrusted text must not cost unbounded time, stack or memory.

All are far above what a person writes. Text beyond one of the first six is refused, with an error that says so.

    MAX_LENGTH         bytes of UTF-8 of an expression
    MAX_DEPTH          how deep brackets, parentheses and function calls may be nested
    MAX_NAME           bytes of a name; libxml2 gives up somewhat below 50000
    MAX_NODES          parts of an expression: steps, operators, literals, calls
    MAX_HEIGHT         operators or steps in a row, summed over the nesting: libxml2, with which answers are
                       compared, nests its operations so and gives up at 5000
    MAX_PATTERN_NODES  nodes of one pattern, conditions included
    MAX_PATTERNS       patterns that the alternatives of one expression are unfolded into; an `or` that would need
                       more is not indexed, but evaluated
    MAX_WORK           steps of work that compiling one expression may take; whatever is left then is not indexed
"""

MAX_LENGTH = LIMIT_LENGTH
MAX_DEPTH = LIMIT_DEPTH
MAX_NAME = LIMIT_NAME
MAX_NODES = LIMIT_NODES
MAX_HEIGHT = LIMIT_HEIGHT
MAX_PATTERN_NODES = LIMIT_PATTERN_NODES
MAX_PATTERNS = LIMIT_PATTERNS
MAX_WORK = LIMIT_WORK
