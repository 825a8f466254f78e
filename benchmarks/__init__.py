"""Benchmarks: `make bench`. What is compared is measured in one run, interleaved, after the answers were seen to be
equal.
"""
