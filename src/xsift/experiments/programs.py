"""Programs of others that are measured beside xsift, and are no part of it: where they are on this machine.

There is one, YFilter 1.0 as its authors released it: a folder with `yfilter.jar` and the two jars that it needs,
`java_cup.jar` and `dtdparser113.jar`. The environment variable XSIFT_YFILTER names the folder, and `xsift experiment
run --yfilter` sets it. It runs on a JDK, version 11 or later.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

__all__ = ["DRIVER", "YFILTER", "YFILTER_HOME", "class_path", "digest", "java", "why_missing"]

YFILTER = "yfilter-1.0"
YFILTER_HOME = "XSIFT_YFILTER"
JARS = ("yfilter.jar", "java_cup.jar", "dtdparser113.jar")
DRIVER = Path(__file__).parent / "YFilterDriver.java"


def why_missing(peer: str) -> str:
    """Why a peer cannot be measured here; "" if it can."""
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
