"""The page of all papers: what each is known for, ours on the same axes, and every claim with its verdict.

It is made from what is kept in `results/`, and from the definition of a paper of which nothing is. So it can be made
again, and a test can say if it is in step.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from xsift.experiments.definition import load
from xsift.experiments.machine import added_text, cores_text
from xsift.experiments.model import Experiment
from xsift.experiments.results import DOES_NOT_HOLD, HOLDS, NOT_MEASURED, OPEN, sure_text

__all__ = ["papers_page"]

WIDTH = 100
ALMOST_NEVER = 0.01  # a share that needs no words
STATES = (HOLDS, DOES_NOT_HOLD, OPEN, NOT_MEASURED)
_UNBROKEN = re.compile(r"(?:`[^`]*`|\S)+")  # words; code is part of one
_SPECIAL = re.compile(r"[-*+>|#]|\d+[.)]$|=+$")  # at the start of a line, this would be no prose
ORDER = ("xtrie", "afilter", "predicate", "ifist", "bfilter", "peers")  # by year; ours last

INTRODUCTION = """# The papers, measured

What each paper is known for, what it measured, and what the same experiment gives here. This page
is made from `results/` by `xsift experiment papers`; [experiments.md](experiments.md) says how
everything is measured.

Times are CPU times, without parsing unless it is said. A verdict is as sure as the medians that it
is taken from; one that is not sure to 90 % is **open**, with what speaks for the claim, and one
that is sure to 99 % or more has no number beside it. One on which two runs do not agree is open
too. *Second* is the same claim on a second workload: documents and paths of NITF 2.5 as it was
published, instead of the DTD that comes with xsift. *Not measured* says that the figure was left
out of the run (`--budget`), or that a series could not be measured; the reports say which and why.
A verdict that is a link leads to why.
"""


def papers_page(results: Path) -> str:
    """The page as Markdown."""
    names = [path.parent.name for path in sorted(results.glob("*/verdicts.json"))]
    names.sort(key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name))
    kept = {name: _read(results / name / "verdicts.json") for name in names}
    machines = {name: _read(results / name / "machine.json") for name in names}
    others = [load(name) for name in ORDER if name not in kept]
    parts = [
        INTRODUCTION,
        _summary(kept, others),
        *(_paper(name, kept[name], machines[name]) for name in names),
        *map(_without_results, others),
    ]
    return "\n".join(parts)


def _read(path: Path) -> dict[str, Any]:
    kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return kept


def _summary(kept: dict[str, dict[str, Any]], others: Sequence[Experiment]) -> str:
    rows = []
    for name, one in kept.items():
        for second in (False, True):
            claims = [claim for claim in one["claims"] if bool(claim["second_of"]) == second]
            if claims:
                count = Counter(claim["verdict"] for claim in claims)
                called = f"[{_short(one['title'])}](#{name})" if not second else f"… on {one['second']}"
                rows.append([called, str(len(claims)), *(str(count[state]) for state in STATES)])
    for experiment in others:
        number = str(sum(len(figure.claims) for figure in experiment.figures if not figure.second_of))
        rows.append([f"[{_short(experiment.title)}](#{experiment.name})", number, "0", "0", "0", number])
    heads = ["", "claims", "hold", "do not hold", "open", "not measured"]
    return "## In short\n\n" + _table(heads, rows, numbers=True)


def _short(title: str) -> str:
    return title.partition(":")[0]


def _paper(name: str, kept: dict[str, Any], machine: dict[str, Any]) -> str:
    parts = [f'<a id="{name}"></a>\n\n## {kept["title"]}\n']
    if kept["paper"]:
        parts.append(_wrapped(f"{kept['paper']}."))
    parts.append(_wrapped(f"[The whole report](reports/{name}.html), measured {_when(machine)}.{_again(kept)}"))
    if kept["headlines"]:
        rows = [[one["says"], one["paper"], one["ours"], one["why"]] for one in kept["headlines"]]
        parts.append(_table(["what it is known for", "the paper", "here", "why they differ"], rows))
    parts += [_claims(name, kept), _why(name, kept)]
    return "\n".join(parts)


def _without_results(experiment: Experiment) -> str:
    """A paper of which nothing is kept."""
    said = f"{experiment.paper}. " if experiment.paper else ""
    run = f"`xsift experiment run {experiment.name}` measures it."
    prose = _wrapped(f"{said}Nothing of it was measured at full scale yet: {run}")
    return f'<a id="{experiment.name}"></a>\n\n## {experiment.title}\n\n{prose}'


def _wrapped(prose: str) -> str:
    return textwrap.fill(prose, WIDTH, break_long_words=False, break_on_hyphens=False) + "\n"


def _when(machine: dict[str, Any]) -> str:
    scale = "at full scale" if machine["scale"] == 1 else f"at scale {machine['scale']:g}"
    busy = f", while others used the machine too (load up to {machine['highest_load']:.0f})"
    where = f"{machine['processor']}, {cores_text(machine)}"
    commit = f", commit {machine['commit']}" if machine.get("commit") else ""
    return (
        f"{machine['measured']} {scale} on {where}{commit}{busy if machine['was_busy'] else ''}{added_text(machine)}"
    )


def _again(kept: dict[str, Any]) -> str:
    """What another run of the file said."""
    again = kept.get("again")
    if not again:
        return ""
    differ = sum(bool(claim.get("runs")) for claim in kept["claims"])
    others = "the others are open" if differ > 1 else "the other is open"
    same = "all of them as here" if not differ else f"{again['claims'] - differ} as here; {others}"
    return f" Another run ({again['measured']}) judged {again['claims']} of the claims, {same}."


def _claims(name: str, kept: dict[str, Any]) -> str:
    """A row for each claim; its verdict on the second workload beside it."""
    pairs = list(_with_second(kept["claims"]))
    again = any(second for _, second in pairs)
    rows = []
    for claim, second in pairs:
        link = f"#{_anchor(name, claim)}"
        verdicts = [_verdict(claim, link), *([_verdict(second, link) if second else ""] if again else [])]
        rows.append([claim["says"], claim["figure"], *verdicts])
    return _table(["claim", "figure", "verdict", *(["second"] if again else [])], rows)


def _why(name: str, kept: dict[str, Any]) -> str:
    """What is to be said of the claims that do not hold or are open: by figure, the same for several claims once."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for claim, second in _with_second(kept["claims"]):
        reason = _reason(claim)
        if second and not reason and _reason(second):
            reason = f"On {kept['second']}: {_reason(second)}"
        if reason:
            reasons.setdefault((_anchor(name, claim), reason), []).append(claim["says"])
    items: list[str] = []
    seen: set[str] = set()
    for (anchor, reason), says in reasons.items():
        place = "" if anchor in seen else f'<a id="{anchor}"></a>'
        seen.add(anchor)
        claims = " ".join(f'"{one}"' for one in says)
        items.append(_item(f"{place}**{anchor.removeprefix(f'{name}-')}**: {claims} {reason}"))
    return "Why claims do not hold, or are open:\n\n" + "\n".join(items) + "\n" if items else ""


def _with_second(claims: Sequence[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any] | None]]:
    """Each claim, and the same on the second workload if it was made there too."""
    again = {(claim["second_of"], claim["says"]): claim for claim in claims if claim["second_of"]}
    for claim in claims:
        if not claim["second_of"]:
            yield claim, again.get((claim["figure"], claim["says"]))


def _anchor(name: str, claim: dict[str, Any]) -> str:
    return f"{name}-{claim['figure']}"


def _item(prose: str) -> str:
    """An item of a list; a line of it neither breaks inside of code nor begins like an item."""
    lines = ["-"]
    for word in _UNBROKEN.findall(prose):
        if len(lines[-1]) + 1 + len(word) <= WIDTH or _SPECIAL.match(word):
            lines[-1] += f" {word}"
        else:
            lines.append(f"  {word}")
    return "\n".join(lines)


def _reason(claim: dict[str, Any]) -> str:
    said = [f"{claim['without']}."] if claim["without"] else []
    return " ".join([*said, claim["reason"]] if claim["verdict"] in (DOES_NOT_HOLD, OPEN) else said)


def _verdict(claim: dict[str, Any], link: str) -> str:
    """The verdict, which leads to why if there is something to say."""
    state: str = claim["verdict"]
    called = f"**{OPEN}**" if state == OPEN else state
    if _reason(claim):
        called = f"[{called}]({link})"
    if claim.get("runs"):
        return f"{called} ({claim['runs']})"
    share = claim.get("share")  # results of before it was kept have none
    if share is None or claim["rounds"] <= 1 or not ALMOST_NEVER < share < 1 - ALMOST_NEVER:
        return called
    return f"{called} ({sure_text(state, share)})"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], numbers: bool = False) -> str:
    rules = ["---", *(["---:"] if numbers else ["---"]) * (len(heads) - 1)]
    lines = [_row(heads), _row(rules), *(_row(row) for row in rows)]
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.replace("|", "\\|").split()) for cell in cells) + " |"
