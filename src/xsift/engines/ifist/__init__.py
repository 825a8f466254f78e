"""FiST and iFiST (Kwon, Rao, Moon, Lee, 2005 and 2009). The engines are in engine.pyx, their structures beside it."""
