"""Builds the Cython kernels: every .pyx below src/ is an extension module of the same name.

    XSIFT_KERNELS="engines/xtrie" python setup.py build_ext --inplace    only the kernels whose path contains a word
    XSIFT_BUILD=debug       bounds checks and assertions on
    XSIFT_BUILD=sanitize    address and undefined-behaviour sanitizers (see `make sanitize`)

All other settings are in pyproject.toml.
"""

import os
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

MODE = os.environ.get("XSIFT_BUILD", "release")
COMPILE = {
    "release": ["-O3", "-g1"],
    "debug": ["-O1", "-g", "-D_GLIBCXX_ASSERTIONS"],
    "sanitize": [
        "-O1",
        "-g",
        "-fno-omit-frame-pointer",
        "-fsanitize=address,undefined",
        "-D_GLIBCXX_ASSERTIONS",
        "-fno-sanitize-recover=undefined",
    ],
}[MODE]
LINK = ["-fsanitize=address,undefined"] if MODE == "sanitize" else []
HEADERS = [header.as_posix() for header in sorted(Path("src").rglob("*.hpp"))]
INCLUDES = sorted({Path(header).parent.as_posix() for header in HEADERS})
CHECKS = MODE != "release"
WORDS = os.environ.get("XSIFT_KERNELS", "").split()


def kernels() -> list[Extension]:
    found = []
    for source in sorted(Path("src").rglob("*.pyx")):
        name = ".".join(source.relative_to("src").with_suffix("").parts)
        if WORDS and not any(word in source.as_posix() for word in WORDS):
            continue
        found.append(
            Extension(
                name,
                [source.as_posix()],
                language="c++",
                depends=HEADERS,
                include_dirs=INCLUDES,
                libraries=["expat"] if "document" in source.parts else [],
                extra_compile_args=["-std=c++17", "-Wno-unused-function", "-Wno-sign-compare", *COMPILE],
                extra_link_args=LINK,
            )
        )
    return found


setup(
    ext_modules=cythonize(
        kernels(),
        build_dir=f"build/cython-{MODE}",
        language_level=3,
        include_path=["src"],
        compiler_directives={
            "boundscheck": CHECKS,
            "initializedcheck": CHECKS,
            "cdivision": True,
            "embedsignature": True,
            "binding": True,
        },
    )
)
