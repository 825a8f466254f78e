"""xsift's number() of a string has the very bits of libxml2's."""

import struct
from typing import cast

import lxml.etree
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xsift.xpath.number import number

_ORACLE = lxml.etree.XPath("number($text)")
_TREE = lxml.etree.fromstring("<a/>")


def bits(value: float) -> bytes:
    return b"nan" if value != value else struct.pack("d", value)


def agrees(text: str) -> bool:
    return bits(number(text)) == bits(cast(float, _ORACLE(_TREE, text=text)))


_KNOWN = [
    *["", "1", " 1 ", "\t\r\n1\n", "-1", "- 1", "--1", "+1", ".5", "-.5", "5.", "-5.", ".", "-.", "-", "1.5.", "1 2"],
    *["1e5", "1E5", "1e", "1e+", "1e-", "1e+5", "1e-5", "1.e5", ".5e1", ".e1", "e5", "1 e5", "1e 5", "1e5 x", "0x1"],
    *["1e400", "0e400", "1e-400", "1e9999999999", "-0", "\xa01", "1\xa0", "Infinity", "NaN", "١", "1" * 400],
    *["0.1234567890123456789012345678", "123456789012345678901234567890.5", "0.30000000000000004", "4.35", "1.0e0"],
    *["9007199254740993", "0.000000000000000000000000000001234567890123456789012", "1e22", "1e23"],
    *["179769313486231580e291", "0." + "0" * 400 + "1"],
]


@pytest.mark.parametrize("text", _KNOWN)
def test_known_strings(text: str) -> None:
    assert agrees(text)


_PIECES = st.lists(st.sampled_from([*"0123456789.-+eE \t", "00000", "999999", "e-", "e+3"]), max_size=40).map("".join)
_DECIMALS = st.from_regex(r"[ ]?-?[0-9]{0,25}\.[0-9]{0,60}([eE][-+]?[0-9]{0,4})?[ ]?", fullmatch=True)


@settings(max_examples=800, derandomize=True, deadline=None, database=None)
@given(_PIECES | _DECIMALS | st.floats().map(repr) | st.floats(allow_nan=False).map("{:.20f}".format))
def test_random_strings(text: str) -> None:
    assert agrees(text), text
