"""Conditions: tests on one element alone, all of them decided by one look at its attributes and its text."""
