"""`sift`, xsift's own engine: engine.pyx; the index is in automaton.hpp and twig_index.hpp, a run in run.hpp."""
