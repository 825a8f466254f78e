"""XFilter (Altinel, Franklin, 2000), a baseline. All of it is in engine.pyx."""
