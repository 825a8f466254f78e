"""The evaluation room: expressions that no index decides, run over the nodes of a document. See DESIGN.md.

tree = NodeTree().build(b"<a/>")               all nodes of a document
evaluator = Evaluator()                        one for each thread
root = evaluator.link(program_of(parse("a")))  a stored program, made ready to run
evaluator.read(tree)
evaluator.holds(root)
"""

from xsift.evaluation.evaluator import Evaluator

__all__ = ["Evaluator"]
