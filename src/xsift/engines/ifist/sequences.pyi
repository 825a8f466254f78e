from xsift.engines.ifist.view import SequenceNode
from xsift.xpath.pattern import Pattern

def profile_sequence(pattern: Pattern, *, wildcards: bool = False) -> list[SequenceNode]: ...
