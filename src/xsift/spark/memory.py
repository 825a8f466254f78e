"""How much of an index a Python worker may hold, and the check before it is loaded.

spark.executor.pyspark.memory is for all workers of an executor: Spark gives each an equal share, and bounds its
address space (RLIMIT_AS) by that. Of the share Python with its libraries takes a part before anything is loaded, and
a mapped file counts in full, though workers share its pages.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from xsift.errors import StorageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_room", "node_memory_bytes", "worker_memory_bytes"]

DEFAULT_BYTES = 2 * 2**30
PYTHON_BYTES = 450 * 2**20  # of address space: interpreter, Arrow, NumPy, PySpark, measured in a worker
ARROW_POOL_BYTES = 2**30  # what Arrow's own allocator reserves at once, if it gets it
SMALLEST_BYTES = 16 * 2**20
MEMORY_SETTING, CORES_SETTING = "spark.executor.pyspark.memory", "spark.executor.cores"
NODE_SETTING = "spark.xsift.nodeMemory"
POOL_SETTING = "spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL"


def worker_memory_bytes(spark: SparkSession) -> int:
    """What the settings of a session leave each worker for its index; 2 GiB if they say nothing."""
    setting = spark.conf.get(MEMORY_SETTING, None)
    if not setting:
        return DEFAULT_BYTES
    cores = int(spark.conf.get(CORES_SETTING, None) or 1)
    left = parsed_bytes(setting) // cores - PYTHON_BYTES
    if left > ARROW_POOL_BYTES and spark.conf.get(POOL_SETTING, None) != "system":
        left -= ARROW_POOL_BYTES
    return max(SMALLEST_BYTES, left)


def node_memory_bytes(spark: SparkSession) -> int:
    """What all workers of a machine may hold together: they map the same files. spark.xsift.nodeMemory if it is set,
    else half of this machine's memory if it is the one that runs the tasks, else as much as a worker may hold. Never
    more than a worker's address space, if that is bounded."""
    setting = spark.conf.get(NODE_SETTING, None)
    master = spark.conf.get("spark.master", None) or ""
    bound = worker_memory_bytes(spark)
    if setting:
        found = parsed_bytes(setting)
    elif master.startswith("local"):
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    else:
        found = bound
    return min(found, bound) if spark.conf.get(MEMORY_SETTING, None) else found


def parsed_bytes(text: str) -> int:
    """A size as Spark's settings have it: 512m, 2g, 2gb; a number alone is MiB."""
    units = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
    digits = text.strip().lower().removesuffix("ib").removesuffix("b")
    return int(digits[:-1]) * units[digits[-1]] if digits[-1] in units else int(digits) * 2**20


def check_room(path: str) -> None:
    """Raises an error that says what to do if a file cannot be mapped within the address space that is left."""
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    size = os.path.getsize(path)
    if size > limit - used:
        raise StorageError(
            "no-memory",
            f"an index of {size / 2**20:,.0f} MiB does not fit: this Python worker may have "
            f"{limit / 2**20:,.0f} MiB, and {used / 2**20:,.0f} MiB are taken",
            hint=f"raise {MEMORY_SETTING} (each worker gets it divided by {CORES_SETTING}), or give shards=",
        )
