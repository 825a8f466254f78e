"""AFilter (Candan, Hsiung, Chen, Tatemura, Agrawal, 2006). The engine is in engine.pyx, its structures beside it."""
