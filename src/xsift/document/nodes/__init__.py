"""A document with all its nodes, as XPath 1.0 sees it: what the evaluator works on."""
