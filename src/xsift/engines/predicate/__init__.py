"""Predicate-based filtering (Hou, Jacobsen, 2006). The engine is in engine.pyx, its structures beside it."""
