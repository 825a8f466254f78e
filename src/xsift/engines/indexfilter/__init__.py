"""Index-Filter (Bruno, Gravano, Koudas, Srivastava, 2003), a baseline. All of it is in engine.pyx."""
