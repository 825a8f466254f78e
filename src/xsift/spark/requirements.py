"""The checks that PySpark and confluent-kafka are there, said once and in words that help."""

from __future__ import annotations

import importlib.util

from xsift.errors import XsiftError

__all__ = ["require_kafka", "require_pyspark"]


def require_pyspark() -> None:
    """Raises an error that says what to install if PySpark is missing."""
    if importlib.util.find_spec("pyspark") is None:
        raise XsiftError("no-pyspark", "xsift.spark needs PySpark", hint="pip install 'xsift[spark]'")


def require_kafka(who: str) -> None:
    """Raises an error that says what to install if confluent-kafka is missing on this machine."""
    if importlib.util.find_spec("confluent_kafka") is None:
        raise XsiftError("no-kafka", f"{who} needs confluent-kafka", hint="pip install 'xsift[kafka]'")
