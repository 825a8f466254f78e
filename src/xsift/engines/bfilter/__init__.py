"""BFilter (Dai, Lung, Majumdar, 2016). The engine is in engine.pyx, its structures beside it."""
