"""`sift`, xsift's own engine: engine.pyx, with its automaton (dfa.pyx) and its twigs (twigs.pyx)."""
