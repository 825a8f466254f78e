"""What is exported, and what is said when PySpark is missing."""

from __future__ import annotations

import subprocess
import sys
import types

import xsift.spark


def test_all_is_what_there_is() -> None:
    public = {
        name
        for name, value in vars(xsift.spark).items()
        if not name.startswith("_")
        and not isinstance(value, types.ModuleType)
        and (getattr(value, "__module__", "") or "").startswith("xsift.spark")
    }
    assert public - {"require_pyspark"} == set(xsift.spark.__all__)


def test_without_pyspark() -> None:
    program = "import sys; sys.modules['pyspark'] = None; import xsift.spark"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "pip install 'xsift[spark]'" in done.stderr
