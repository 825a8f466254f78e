"""The hash tables of the kernels: nobody outside can tell where a key falls."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
HEADERS = HERE.parent.parent / "src" / "xsift" / "native"


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
def test_keys_that_fall_into_one_place_are_spread_by_the_salt(tmp_path: Path) -> None:
    program = tmp_path / "tables"
    subprocess.run(["g++", "-std=c++17", "-O1", f"-I{HEADERS}", HERE / "tables.cpp", "-o", program], check=True)
    # Sanitizers that this process is run with end a program that has no memory, which this one means to try.
    alone = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    runs = {subprocess.run([program], env=alone, capture_output=True, text=True, check=True).stdout for _ in range(3)}
    for run in runs:
        plain, salted, plain_keys, salted_keys = map(int, run.split())
        assert (plain, plain_keys) == (1, 1)
        assert salted > 80
        assert salted_keys > 80
