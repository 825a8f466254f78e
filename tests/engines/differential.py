"""Every engine, with each of its options, beside the reference, for as long as one likes:

    nice python -m tests.engines.differential --seconds 3600 [--seed N] [--engine sift …]

Patterns and documents are those of recursive.py. A difference is printed with its seed, the shortest first; with that
seed and that engine alone it comes back at once, and becomes a case in the engine's tests.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter

from tests.engines.recursive import recursive_differences
from xsift.engines import ENGINES, create, engine_class

# Caches so small that they are flushed all the time.
TINY = {"cache_bytes": (0, 1 << 12)}
# Patterns of many `//` on deep documents have millions of tuples: enough of them, and the next document.
FEW_TUPLES = (100, 10_000)


def random_options(name: str, rng: random.Random) -> dict[str, object]:
    """One of an engine's ways to work; where a number is asked for, the default or a tiny one."""
    options: dict[str, object] = {}
    for option, choices in engine_class(name).options.items():
        choice = rng.choice([*choices, *TINY.get(option, ())])
        if choice is not None and rng.random() < 0.7:
            options[option] = choice
    if "tuple_steps" in engine_class(name).options:
        options["tuple_steps"] = rng.choice(FEW_TUPLES)
    return options


def run(seconds: float, seed: int, names: list[str]) -> int:
    """Returns how many pairs of an engine and a seed differed."""
    end = time.monotonic() + seconds
    runs: Counter[str] = Counter()
    faults = 0
    while time.monotonic() < end:
        seed += 1
        for name in names:
            rng = random.Random(f"{name} {seed}")
            options = random_options(name, rng)
            kind = rng.choice(["linear", "twigs", "ordered"])
            found = recursive_differences(
                create(name, **options), rng, 6, linear=kind == "linear", ordered=kind == "ordered"
            )
            runs[name] += 1
            if found:
                faults += 1
                print(
                    f"seed {seed}, {name} {options}, {kind}: {len(found)} differences, such as {found[0]}", flush=True
                )
    print(f"{sum(runs.values()):,} runs up to seed {seed}, {faults} with differences: {dict(runs)}")
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    parser.add_argument("--engine", action="append", choices=[name for name in ENGINES if name != "reference"])
    arguments = parser.parse_args()
    print(f"engines, seed {arguments.seed}", flush=True)
    names = arguments.engine or [name for name in ENGINES if name != "reference"]
    return 1 if run(arguments.seconds, arguments.seed, names) else 0


if __name__ == "__main__":
    sys.exit(main())
