"""XTrie (Chan, Felber, Garofalakis, Rastogi, 2002). The engine is in engine.pyx, its structures beside it."""
