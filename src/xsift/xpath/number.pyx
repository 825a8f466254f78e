"""Strings to numbers as libxml2 does it (number.hpp), for plain Python code."""

from xsift.xpath.number cimport xpath_number


def number(str text not None):
    """XPath's number() of a string: `number(" -1.5 ")` is -1.5, `number("+1")` is NaN."""
    encoded = text.encode("utf-8", "surrogatepass")
    return xpath_number(encoded, len(encoded))
