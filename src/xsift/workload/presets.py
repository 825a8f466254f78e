"""The papers' workloads by name, each parameter traced to where the paper gives it.

A preset is the base case of a paper's experiments; what an experiment varies is replaced in it. Where a paper does
not give a parameter, or its numerals are unreadable in the copies that we have (XTrie, parts of AFilter), the comment
says so, and ours is chosen to fit its prose. The papers give averages of their documents rather than the settings of
their generators: ours are set so that the averages come out (`xsift generate figures` prints both).
"""

from __future__ import annotations

from dataclasses import dataclass

from xsift.errors import WorkloadError
from xsift.workload.documents import DocumentParameters
from xsift.workload.subscriptions import SubscriptionParameters

__all__ = ["PRESETS", "PaperFigure", "Preset", "find_preset"]


@dataclass(frozen=True)
class PaperFigure:
    """A figure that a paper gives of its workload. `measure` names how ours is measured, `argument` with what: the
    bytes of documents, or the number of subscriptions."""

    name: str
    paper: float
    where: str
    measure: str
    argument: int = 0

    def text(self, value: float) -> str:
        if self.measure == "match rate":
            return f"{value:.1%}"
        return f"{value:.1f}" if abs(value) < 100 and value != int(value) else f"{value:,.0f}"


@dataclass(frozen=True)
class Preset:
    """A paper's documents and subscriptions."""

    name: str
    paper: str
    documents: DocumentParameters
    subscriptions: SubscriptionParameters
    figures: tuple[PaperFigure, ...] = ()


# Predicate-based §5.1: NITF, IBM's generator with 6 levels ("consistently with the maximum length of XPEs", which is
# 6), 500 documents of about 140 tags and 8.77 KB. Repeats, odds and words are ours, set for these averages.
_NITF_OF_SIX_LEVELS = DocumentParameters(
    dtd="nitf", number=500, levels=6, maximum_repeats=10, optional_odds=0.4, attribute_odds=0.8, text_words=12
)


def _ifist(dtd: str, depth: int, documents: DocumentParameters, *figures: PaperFigure) -> Preset:
    """iFiST's three data sets differ in DTD, depth and documents."""
    return Preset(
        f"ifist-{dtd}",
        "iFiST",
        documents,
        SubscriptionParameters(
            dtd=dtd,
            number=75_000,  # §7.4.2, §7.5: fixed to 75,000 (§7.2.1: 50,000 to 150,000)
            maximum_depth=depth,  # Table III: 6 to 10; §7.4.1: 6 for NITF and 10 for Treebank
            wildcard_odds=0.0,  # §7.3 only: 0.0 to 0.5
            descendant_odds=0.2,  # §7.4.1; Table III: 0.0 to 0.8
            name_skew=0.0,  # Table III: 0.0 to 0.9; the uniform sets of §7.2
            nested_paths=3,  # §7.3, §7.4.1: 3; Table III: 1 to 7
            distinct=True,  # §7.4.1: the set before it is replicated
            ordered=True,  # §7.2: "iFiST supports ordered twig pattern matches"
        ),
        figures,
    )


def _depths(*depths: float) -> tuple[PaperFigure, ...]:
    """iFiST, Table V."""
    return tuple(
        PaperFigure(f"depth of documents of {size // 1000}k", depth, "Table V", "depth", size)
        for size, depth in zip((5_000, 10_000, 20_000), depths, strict=True)
    )


def _profiles(nodes: int, segments: int) -> tuple[PaperFigure, ...]:
    """iFiST, Table IV, at a degree of duplicates of 1. A shareable segment ends at each leaf's branch."""
    return (
        PaperFigure("sequence nodes a profile", nodes / 75_000, "Table IV", "sequence nodes", 20_000),
        PaperFigure("segments (leaves) a profile", segments / 75_000, "Table IV", "leaves", 20_000),
    )


_LIST = (
    Preset(
        "yfilter",
        "YFilter",
        _NITF_OF_SIX_LEVELS,  # the paper is not among ours: the documents of the papers that compare with it
        SubscriptionParameters(
            dtd="nitf",
            number=100_000,
            # The defaults of YFilter's query generator, which four of the five papers used.
            maximum_depth=6,
            wildcard_odds=0.2,
            descendant_odds=0.2,
            name_skew=0.0,
            distinct=True,
        ),
    ),
    Preset(
        "xtrie",
        "XTrie",
        DocumentParameters(
            dtd="nitf",  # §6: NITF, IBM's generator
            number=100,  # §6: three sets of three digits' worth of documents; the numeral is unreadable
            levels=20,  # not given; as deep as the expressions
            size_bytes=5_000,  # §6: the medium set; by its parsing time of two digits' worth of ms, about 100 tags
        ),
        SubscriptionParameters(
            dtd="nitf",
            number=100_000,  # §6.1, Figure 7(a), the largest set; by its six digits
            maximum_depth=20,  # §6.1: the base case, a number of two digits
            wildcard_odds=0.1,  # §6.1: a number below 1 that prints like that of // and like the largest of branching
            descendant_odds=0.1,  # §6.1
            name_skew=0.0,  # §6.1: the Zipf parameter is one digit, and 0 means uniform
            nested_paths=0,  # §6.1: "a value of 0 will generate only single-path XPEs"
            distinct=True,  # §6: "with no duplicates"
        ),
        (
            PaperFigure("elements of the DTD", 123, "§6, unreadable: NITF 2.5", "elements"),
            PaperFigure("attributes of the DTD", 513, "§6, unreadable: NITF 2.5", "attributes"),
        ),
    ),
    Preset(
        "afilter",
        "AFilter",
        DocumentParameters(
            dtd="nitf",  # §8: NITF, ToXgene
            number=100,  # not given
            levels=15,  # Table 2 has the message depth, unreadable; as deep as the filters
            size_bytes=6_000,  # Table 2
        ),
        SubscriptionParameters(
            dtd="nitf",
            number=100_000,  # Table 2: 10K-100K
            maximum_depth=15,  # Table 2
            wildcard_odds=0.1,  # not given but for Figure 18, which varies it
            descendant_odds=0.1,  # not given but for Figure 18, which varies it
            distinct=True,  # not given; §8.6 speaks of the numbers of distinct path expressions
        ),
        (
            PaperFigure("bytes a document", 6_000, "Table 2", "bytes"),
            PaperFigure("steps of the longest path", 15, "Table 2", "longest", 20_000),
        ),
    ),
    Preset(
        "afilter-book",
        "AFilter",
        DocumentParameters(dtd="book", number=100, levels=15, size_bytes=6_000),  # §8.6; as above
        SubscriptionParameters(
            dtd="book",  # §8.6: "a higher recursion rate and a smaller number of unique labels"
            number=2_000,  # §8.6: "the numbers of distinct path expressions … are smaller"
            maximum_depth=15,
            wildcard_odds=0.2,  # §8.6 varies it from light to heavy usage
            descendant_odds=0.2,
            distinct=True,
        ),
        (PaperFigure("bytes a document", 6_000, "Table 2", "bytes"),),
    ),
    _ifist(
        "treebank",
        10,
        # Table II: 250 tags, at most 20 levels (21 in Table V, which counts one more). §7.1: groups of 1,000.
        DocumentParameters(
            dtd="treebank", number=1_000, levels=21, maximum_repeats=2, optional_odds=0.5, size_bytes=10_000
        ),
        PaperFigure("elements of the DTD", 250, "Table II", "elements"),
        *_depths(18.59, 20.91, 21.00),
        *_profiles(1_194_958, 298_209),
    ),
    _ifist(
        "nitf",
        6,
        DocumentParameters(
            dtd="nitf", number=1_000, levels=10, maximum_repeats=2, optional_odds=0.2, size_bytes=10_000
        ),
        PaperFigure("elements of the DTD", 123, "Table II", "elements"),
        *_depths(8.13, 8.98, 9.41),
        *_profiles(1_179_274, 299_327),
    ),
    _ifist(
        "auction",
        10,
        # Table II has at most 10 levels, but Table V an average of 12 for the largest: 12 levels.
        DocumentParameters(
            dtd="auction", number=1_000, levels=12, maximum_repeats=3, optional_odds=0.4, size_bytes=10_000
        ),
        PaperFigure("elements of the DTD", 77, "Table II", "elements"),
        *_depths(10.79, 11.45, 12.07),
        *_profiles(1_237_706, 295_645),
    ),
    Preset(
        "predicate",
        "predicate-based filtering",
        _NITF_OF_SIX_LEVELS,
        SubscriptionParameters(
            dtd="nitf",
            number=125_000,  # §5.2: 25,000 to 125,000 distinct ones
            maximum_depth=6,  # §5.2: L
            wildcard_odds=0.2,  # §5.2: W
            descendant_odds=0.2,  # §5.2: DO
            distinct=True,  # §5.2: D; not for the duplicate workload
        ),
        (
            PaperFigure("tags a document", 140, "§5.1", "tags"),
            PaperFigure("bytes a document", 8_770, "§5.1", "bytes"),
            PaperFigure("distinct of 500,000", 55_000, "§5.2", "distinct", 500_000),
            PaperFigure("distinct of 5,000,000", 167_000, "§5.2", "distinct", 5_000_000),
            PaperFigure("match rate", 0.06, "§5.2", "match rate", 125_000),
        ),
    ),
    Preset(
        "predicate-psd",
        "predicate-based filtering",
        # §5.1, as for NITF.
        DocumentParameters(
            dtd="psd", number=500, levels=6, maximum_repeats=3, optional_odds=0.5, attribute_odds=0.5, text_words=42
        ),
        SubscriptionParameters(
            dtd="psd",
            number=8_000,  # §5.2: 1,000 to 10,000 distinct ones; beyond 9,000 ours get rare
            maximum_depth=6,
            wildcard_odds=0.2,
            descendant_odds=0.2,
            stop_odds=0.15,  # the paper shows that covering pays here, so some expressions are prefixes of others
            distinct=True,
        ),
        (
            PaperFigure("tags a document", 140, "§5.1", "tags"),
            PaperFigure("bytes a document", 8_770, "§5.1", "bytes"),
            PaperFigure("distinct of 500,000", 5_500, "§5.2", "distinct", 500_000),
            PaperFigure("distinct of 5,000,000", 10_000, "§5.2", "distinct", 5_000_000),
            PaperFigure("match rate", 0.75, "§5.2", "match rate", 8_000),
        ),
    ),
    Preset(
        "bfilter",
        "BFilter",
        DocumentParameters(
            dtd="nitf",  # §4: NITF, ToXgene
            number=10,  # §4: "ten documents"
            levels=6,  # §4.4: "the default level of these documents is 6"
            size_bytes=10_000,  # Tables 1 and 2: 5, 10, 33 and 193 KB
        ),
        SubscriptionParameters(
            dtd="nitf",
            number=1_000,  # Tables 1 and 2: 1000 and 2000 (§4.4: 100)
            maximum_depth=6,  # Tables 1 and 2: L
            wildcard_odds=0.2,  # Tables 1 and 2
            descendant_odds=0.0,  # Tables 1 and 2
            conditions=3,  # Tables 1 and 2: P
            nested_paths=1,  # Table 1: NP (Table 2: 2)
        ),
        (
            PaperFigure("depth of documents", 6, "§4.4", "depth"),
            PaperFigure("bytes a document", 10_000, "Table 1", "bytes"),
        ),
    ),
)

PRESETS: dict[str, Preset] = {preset.name: preset for preset in _LIST}
PRESETS["ifist"] = PRESETS["ifist-treebank"]


def find_preset(name: str) -> Preset:
    """The preset with this name."""
    if name not in PRESETS:
        raise WorkloadError(
            "preset-unknown", f"There is no preset {name!r}", hint=f"there are: {', '.join(sorted(PRESETS))}"
        )
    return PRESETS[name]
