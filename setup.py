"""Builds the Cython kernels: every .pyx below src/ is an extension module of the same name.

    XSIFT_KERNELS="engines/xtrie" python setup.py build_ext --inplace    only the kernels whose path contains a word
    XSIFT_BUILD=profile     as released, with lines for perf and callgrind
    XSIFT_BUILD=debug       bounds checks and assertions on
    XSIFT_BUILD=sanitize    address and undefined-behaviour sanitizers; counts the lines that run, for gcov
    XSIFT_JOBS=4            how many compilers run at once; all processors by default

All other settings are in pyproject.toml.
"""

import itertools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

MODE = os.environ.get("XSIFT_BUILD", "release")
JOBS = int(os.environ.get("XSIFT_JOBS") or os.cpu_count() or 1)
COMPILE = {
    "release": [],  # see `optimisation`
    "profile": ["-O3", "-g1"],
    "debug": ["-O1", "-g", "-D_GLIBCXX_ASSERTIONS"],
    "sanitize": [
        "-O1",
        "-g1",  # lines of a stack are enough
        "-fno-omit-frame-pointer",
        "-fsanitize=address,undefined",
        "-D_GLIBCXX_ASSERTIONS",
        "-fno-sanitize-recover=undefined",
        "--coverage",
    ],
}[MODE]
LINK = ["-fsanitize=address,undefined", "--coverage"] if MODE == "sanitize" else []
HEADERS = [header.as_posix() for header in sorted(Path("src").rglob("*.hpp"))]
INCLUDES = sorted({Path(header).parent.as_posix() for header in HEADERS})
CHECKS = MODE not in ("release", "profile")
# What Cython would write into every module (memory views, calls, errors) is compiled once; the others import it.
SHARED = "xsift.native.cython_shared"
WORDS = os.environ.get("XSIFT_KERNELS", "").split()

NO_EXPAT = """
xsift reads XML with libexpat, and the linker finds none on this machine.
    Debian, Ubuntu    apt-get install libexpat1-dev
    Fedora            dnf install expat-devel
    Alpine            apk add expat-dev
    macOS             xcode-select --install
Then install xsift again.
"""


class BuildKernels(build_ext):
    """Builds with all processors, and says which kernel it is at."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or JOBS

    def build_extensions(self) -> None:
        compiler = list(itertools.takewhile(lambda word: not word.startswith("-"), self.compiler.compiler_so_cxx))
        expat = expat_arguments(compiler or ["c++"])
        for extension in self.extensions:
            if "document" in extension.name.split("."):
                extension.extra_link_args = [*extension.extra_link_args, *expat]
        self._to_do, self._done = len(self.extensions), 0
        super().build_extensions()

    def build_extension(self, ext: Extension) -> None:
        super().build_extension(ext)
        self._done += 1
        print(f"[{self._done}/{self._to_do}] compiled {ext.name}", file=sys.stderr, flush=True)


def expat_arguments(compiler: list[str]) -> list[str]:
    """How the linker is told of libexpat: by name, or, without the development package, by its file."""
    for arguments in (["-lexpat"], ["-l:libexpat.so.1"]):
        with tempfile.TemporaryDirectory() as folder:
            probe = Path(folder, "probe.cpp")
            probe.write_text(
                'extern "C" const char* XML_ExpatVersion(); int main() { return !XML_ExpatVersion(); }\n'
            )
            command = [*compiler, str(probe), "-o", str(probe.with_suffix("")), *arguments]
            if subprocess.run(command, capture_output=True, check=False).returncode == 0:
                return arguments
    sys.exit(NO_EXPAT)


def optimisation(source: Path) -> list[str]:
    """What runs once a subscription is compiled for size and a quick build, what runs once an element for speed."""
    if MODE != "release":
        return COMPILE
    cold = {"xpath", "workload"} & set(source.parts) or source.stem in ("rows", "segment")
    return ["-g0", "-O2" if cold else "-O3"]


def kernels() -> list[Extension]:
    found = []
    if WORDS != ["none"]:
        source = f"src/{SHARED.replace('.', '/')}.c"
        found.append(Extension(SHARED, [source], extra_compile_args=["-g0", "-O2"], extra_link_args=LINK))
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
                extra_compile_args=["-std=c++17", "-Wno-unused-function", "-Wno-sign-compare", *optimisation(source)],
                extra_link_args=LINK,
            )
        )
    return found


if __name__ == "__main__":  # cythonize starts processes, which read this file again on some systems
    setup(
        cmdclass={"build_ext": BuildKernels},
        ext_modules=cythonize(
            kernels(),
            build_dir=f"build/cython-{MODE}",
            nthreads=0 if JOBS == 1 else JOBS,
            language_level=3,
            include_path=["src"],
            shared_utility_qualified_name=SHARED,
            compiler_directives={
                "boundscheck": CHECKS,
                "initializedcheck": CHECKS,
                "cdivision": True,
                "embedsignature": True,
                "binding": True,
                "auto_pickle": False,  # what can be pickled says how; all else refuses
                "emit_code_comments": MODE in ("profile", "sanitize"),  # the source beside its C++
            },
        ),
    )
