"""What is exported, and what is said when PySpark is missing."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import xsift.spark


def test_all_is_what_there_is() -> None:
    assert set(xsift.spark.__all__) == {*xsift.spark._PLACES, "register_sources"}
    for name in xsift.spark.__all__:
        assert getattr(xsift.spark, name).__module__.startswith("xsift.spark"), name
        assert name in dir(xsift.spark)
    with pytest.raises(AttributeError, match="nothing"):
        _ = xsift.spark.nothing


def test_a_stream_takes_every_argument_of_a_batch() -> None:
    batch, stream = (
        inspect.signature(it).parameters for it in (xsift.spark.match_documents, xsift.spark.match_stream)
    )
    assert set(batch) <= set(stream)
    own = {name for name in batch if batch[name].default != stream[name].default}
    assert own == {"metrics"}  # a stream is always observed


def test_a_worker_loads_little() -> None:
    """What it loads counts against the memory that Spark gives it, address space included."""
    program = "import sys, xsift.spark.worker, xsift.spark.spread, xsift.spark.indexes; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {"deltalake", "xsift.service", "pandas", "confluent_kafka", "lxml"} & set(done.stdout.split())


def test_without_pyspark() -> None:
    program = "import sys; sys.modules['pyspark'] = None; import xsift.spark"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "pip install 'xsift[spark]'" in done.stderr
