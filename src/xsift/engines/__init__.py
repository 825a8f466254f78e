"""The engines: one module per paper, the definition (`reference`), and `sift`. DESIGN.md says what an engine is."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from xsift.engines.base import Engine
from xsift.errors import EngineError

__all__ = ["ENGINES", "Engine", "EngineDescription", "create", "engine_class", "list_engines"]

# name -> module and class, in the order in which `xsift engines` lists them
ENGINES: dict[str, tuple[str, str]] = {
    "reference": ("xsift.engines.reference", "Reference"),
    "yfilter": ("xsift.engines.yfilter.engine", "YFilter"),
    "xfilter": ("xsift.engines.xfilter.engine", "XFilter"),
    "xtrie": ("xsift.engines.xtrie.engine", "XTrie"),
    "afilter": ("xsift.engines.afilter.engine", "AFilter"),
    "fist": ("xsift.engines.ifist.engine", "FiST"),
    "ifist": ("xsift.engines.ifist.engine", "IFiST"),
    "predicate": ("xsift.engines.predicate.engine", "PredicateEngine"),
    "indexfilter": ("xsift.engines.indexfilter.engine", "IndexFilter"),
    "bfilter": ("xsift.engines.bfilter.engine", "BFilter"),
    "sift": ("xsift.engines.sift.engine", "Sift"),
}


def engine_class(name: str) -> type[Engine]:
    """The class of an engine. Raises EngineError for a name that is no engine's."""
    if name not in ENGINES:
        raise EngineError("unknown-engine", f"no engine is called {name!r}", hint="one of: " + ", ".join(ENGINES))
    module, kind = ENGINES[name]
    return getattr(importlib.import_module(module), kind)  # type: ignore[no-any-return]


def create(name: str, **options: Any) -> Engine:
    """A new, empty engine with the given options."""
    try:
        return engine_class(name)(**options)
    except OverflowError:
        given = ", ".join(f"{option}={value!r}" for option, value in options.items())
        raise EngineError("bad-option", f"engine {name!r}: {given}", hint="a number is too large") from None


@dataclass(frozen=True)
class EngineDescription:
    """What an engine is, and when to use it.

    name      what `Subscriptions.matcher(engine=…)` and `--engine` take
    paper     where its idea was published
    takes     which patterns it accepts
    wins      what it is best at
    caveat    what to know before it is chosen
    options   its options, with the values that each can have, the default first
    """

    name: str
    paper: str
    takes: str
    wins: str
    caveat: str
    options: dict[str, tuple[object, ...]]


def list_engines() -> list[EngineDescription]:
    """The engines there are. `Subscriptions.matcher(engine=name, **options)` uses one."""
    kinds = [engine_class(name) for name in ENGINES]
    return [
        EngineDescription(kind.name, kind.paper, kind.takes, kind.wins, kind.caveat, dict(kind.options))
        for kind in kinds
    ]
