"""A session with the settings that suit xsift, for the command line, the demo, the examples and the benchmark."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from xsift.errors import XsiftError
from xsift.spark.batch import BATCH_BYTES, BATCH_SETTING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["make_session"]


def make_session(
    master: str = "local[*]",
    *,
    remote: str | None = None,
    name: str = "xsift",
    driver_memory: str = "1g",
    progress: bool = False,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """The session of this process, made if there is none: on a master, or with `remote` on a Spark Connect server.

    Documents and indexes are outside of the JVM, so that a small heap does. Python workers use this interpreter.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name).config(BATCH_SETTING, BATCH_BYTES)
    if remote:
        builder = builder.remote(remote)
    else:
        if master.startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = (
            builder.master(master)
            .config("spark.driver.memory", driver_memory)
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", str(progress).lower())
            .config("spark.log.level", "ERROR")
        )
    for key, value in (settings or {}).items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        raise XsiftError(
            "no-java",
            "Spark could not start Java",
            hint="install Java 17 (Debian: openjdk-17-jre-headless), or set JAVA_HOME",
        ) from error
