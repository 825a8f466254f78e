"""`python -m benchmarks [NAME …]`: runs the benchmarks, all of them by default."""

from __future__ import annotations

import argparse
import importlib
import sys

BENCHMARKS = {
    "foundation": "parsing alone, engines, and the lxml loop, at 1,000 to 100,000 subscriptions",
    "scanner": "the scanner beside libexpat, on documents of many kinds; filtering beside libexpat alone",
    "sift": "the engine sift beside the others, on the workloads that it was made for",
    "novelty": "the engine sift beside the others, on documents that are new to it, and on those that it has seen",
    "tables": "subscription tables: a million rows, single changes, looks, a stream that follows, restarts",
    "written": "the XPath that people write: stylesheets, rules about invoices, a mixed set, hostile expressions",
    "yardstick": "the path engines beside YFilter 1.0 (Java), which XSIFT_YFILTER names: paths, twigs, conditions",
    "spark": "Spark: beside xpath_boolean and lxml, throughput beside the library, memory of workers, shards",
    "serve": "the service over loopback: documents a second, publish to event, an import meanwhile",
    "hostile": "what one input may cost: worst cases at three sizes, with the exponent of time over size",
    "picture": "the picture of README.md (only if named): sift beside the lxml loop and YFilter 1.0, from bytes on",
    "duplicates": "5,000,000 subscriptions, 167,000 of them distinct",
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="; ".join(f"{k}: {v}" for k, v in BENCHMARKS.items())
    )
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies the sizes; default: 1")
    arguments = parser.parse_args()
    for name in arguments.names or [name for name in BENCHMARKS if name != "picture"]:
        if name not in BENCHMARKS:
            parser.error(f"there is no benchmark {name!r}; there are {', '.join(BENCHMARKS)}")
        print(f"\n{name}: {BENCHMARKS[name]}\n", flush=True)
        importlib.import_module(f"benchmarks.{name}").run(arguments.scale)
    return 0


sys.exit(main())
