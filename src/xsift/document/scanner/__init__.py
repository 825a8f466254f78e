"""The scanner: reads the usual kind of document in one pass (scanner.hpp). expat reads all others."""
