"""YFilter (Diao, Altinel, Franklin, Zhang, Fischer, 2003), a baseline: engine.pyx. Its automaton is in ../nfa.pyx."""
