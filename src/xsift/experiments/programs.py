"""What others made, is measured beside xsift or measured with, and is no part of it: where it is on this machine.

YFilter 1.0 as its authors released it: a folder with `yfilter.jar` and the two jars that it needs, `java_cup.jar` and
`dtdparser113.jar`. The environment variable XSIFT_YFILTER names the folder, and `xsift experiment run --yfilter` sets
it. It runs on a JDK, version 11 or later. Spark comes with the extra `spark`, and needs a JDK too.

DTDs as they were published, for the second workloads: XSIFT_DTDS names their folder, or `--dtds`. A definition names
one as `$XSIFT_DTDS/nitf-2-5.dtd`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
from pathlib import Path

__all__ = [
    "DRIVER",
    "DTDS",
    "SPARK",
    "YFILTER",
    "YFILTER_HOME",
    "class_path",
    "digest",
    "dtd_path",
    "java",
    "why_missing",
    "why_no_dtd",
]

YFILTER = "yfilter-1.0"
YFILTER_HOME = "XSIFT_YFILTER"
SPARK = "spark-xpath"
DTDS = "XSIFT_DTDS"
JARS = ("yfilter.jar", "java_cup.jar", "dtdparser113.jar")
DRIVER = Path(__file__).parent / "YFilterDriver.java"


def why_missing(peer: str) -> str:
    """Why a peer cannot be measured here; "" if it can."""
    if peer == SPARK:
        return _why_no_spark()
    if peer != YFILTER:
        return ""
    home = os.environ.get(YFILTER_HOME)
    if not home:
        return f"YFilter 1.0 is not part of xsift: --yfilter or {YFILTER_HOME} says in which folder it is"
    absent = [jar for jar in JARS if not (Path(home) / jar).is_file()]
    if absent:
        return f"the folder {home!r} that --yfilter or {YFILTER_HOME} names has no {', '.join(absent)}"
    if not java():
        return "YFilter 1.0 needs a JDK: neither JAVA_HOME nor PATH has the command java"
    return ""


def _why_no_spark() -> str:
    if importlib.util.find_spec("pyspark") is None:
        return "Spark is not installed: pip install 'xsift[spark]'"
    return "" if java() else "Spark needs a JDK: neither JAVA_HOME nor PATH has the command java"


def why_no_dtd(name: str) -> str:
    """Why a DTD that a workload names is not to be had; "" if it is, or is none of others."""
    if not name.startswith(f"${DTDS}/"):
        return ""
    if not os.environ.get(DTDS):
        return f"published DTDs are not part of xsift: --dtds or {DTDS} says in which folder {Path(name).name} is"
    return "" if Path(dtd_path(name)).is_file() else f"{dtd_path(name)!r} is not there"


def dtd_path(name: str) -> str:
    """The path of a DTD, with the folder of the published ones filled in."""
    return name.replace(f"${DTDS}", os.environ.get(DTDS, ""), 1) if name.startswith(f"${DTDS}/") else name


def java() -> str:
    """The command, or ""."""
    home = os.environ.get("JAVA_HOME")
    return (shutil.which("java", path=f"{home}/bin") if home else None) or shutil.which("java") or ""


def class_path() -> str:
    """Where Java finds YFilter."""
    home = Path(os.environ[YFILTER_HOME]).resolve()
    return os.pathsep.join(str(home / jar) for jar in JARS)


def digest(peer: str) -> str:
    """A digest of a peer's code; "" for one that comes with its library."""
    if peer != YFILTER:
        return ""
    home = Path(os.environ[YFILTER_HOME])
    content = b"".join(path.read_bytes() for path in (DRIVER, *(home / jar for jar in JARS)))
    return hashlib.sha256(content).hexdigest()[:16]
