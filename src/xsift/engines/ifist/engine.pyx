"""`ifist`, `fist`: twigs as sequences, matched bottom-up.

Papers: Joonho Kwon, Praveen Rao, Bongki Moon, Sukho Lee, "Fast XML document filtering by sequencing twig patterns",
ACM TOIT 9(4), 2009 (iFiST); the same, "FiST: scalable XML document filtering by sequencing twig patterns", VLDB 2005
(FiST).

The idea. A twig is written as its labelled Prüfer sequence: from each leaf upwards to where its branch joins the
tree. Cut there, the sequence is a list of segments, each a path from a leaf to a branch node. While a document is
read, each end tag asks which segments begin with this name, and compares them with the stack of open elements. A
segment that matches makes the profile's next segment active; equal segments of different profiles are one row of a
table and are compared once. Whether the segments of a profile met in the same elements is verified in a second phase.

The paper's terms here: *profile* a pattern, *Qid* its key; *profile sequence*, *Sym*, *δ = (op, extra)*
`profile_sequence` (sequences.pyx); *shareable segment* `Segment`; *segment table* `table`, its rows `TableRow`;
*candidate list* `TableRow.candidates` and, what a document adds, `SegmentState.candidates`; *terse sequence*
a profile's part of `places`; *sequence index* `buckets` and, what a document adds, `active`; *run-time stack* `stack`; *path
stack* `OpenElement.deepest`; *BranchID set* the entries `BranchID` of a row; *FindSubsequence* `find_subsequence`,
*doSimpleStackTest* `simple_stack_test`, *doRecursiveStackTest* `recursive_stack_test`, *TestPC*, *TestAD* `climb`, *refinement* `verify`, `progress`. The
index is in index.pyx, the run in run.pyx, its state in scratch.pyx. The methods below show the
figures.

Where the printed algorithm is wrong, or does not mean what `ordered=True` means (children in strictly increasing
post-order), with the smallest documents that tell. All are tests.

- *Nested branch nodes.* The paper intersects the BranchID sets of each branch node on its own. `//a[b[c]/d]/e` would
  match `<r><a><b><c/><d/></b></a><a><b><d/></b><e/></a></r>`: the first b has c and d, the second a has b/d and e.
  Here a branch node is a *unit*, verified at each open element on its own, as soon as its last child is there; only a
  unit that is satisfied goes on, up to the next branch node. So the sets of an outer branch node hold only what holds
  inside.
- *The same element twice.* A name occurs in LPS(T) once for each child. `/a[b]/b` would match
  `<a><b><c/><c/></b></a>`. Here an element counts when its own end tag is read, that is at its last occurrence, and a
  child must end later than the one before.
- *Ends of leaves are not ends of branches.* `/r[.//a/x]//b` would match `<r><a><x/><b/></a></r>`, because x ends
  before b; but a ends after it. So a child of an ordered branch node that is still open is *pending* until it ends.
- *Greedy progress.* `/r[.//a/y]//c/x` would not match `<r><c><x/><a><y/></a></c></r>`: x is gone before y makes its
  segment active. A segment waits for the one before it (its *guard*) only where what it needs cannot have ended by
  then: after a sibling on the `/` axis. Within an element, taking the earliest child each time is safe, as in the
  reference engine.
- *Leaf wildcards.* The path stack holds the path to the last leaf, so `/a/*/*/*` would not match
  `<a><b><c><d/></c><e/></b></a>`. Here each open element knows how deep the document has been below it. A leaf
  wildcard that is an ordered child of a branch node is looked for at each end tag below that node.
- *Memory.* The printed BranchID sets grow with the document. Here a BranchID is dropped with its element's end tag:
  what a document needs is bounded by the index and the document's depth.

Other deviations. The sequence index looks one node ahead (`BucketKind`) and keeps what a first look at the stack
needs end to end (`Look`); the segment table is read only for what may fit. An internal branch node's first ordered
child needs no BranchID of a profile's own: that of the segment, which all profiles share, says as much.

Options, for those who want to measure the paper's way beside this one; answers are the same. *stack_test*: "recursive"
compares a whole segment with the stack when its first node ends (section 5.1); "simple" compares a node with the next one, and
copies that into the sequence index (section 4.3.1, Algorithm 3; here up to the branch node). *refinement*:
"progressive" verifies branch nodes while their elements are open, as said above; "afterwards" is the paper's second phase
(Algorithm 4, made exact: refinement.pyx), for which BranchIDs are kept until the document has ended.

Unordered profiles are the same segments, in canonical order. What comes first is not known, so all of them are in the
sequence index of every document; that is the cost: stack tests and BranchIDs for segments whose profile has no
chance. The candidate lists are still progressive: a unit waits in the list of one segment that the document has not
had yet, the rarest first, and moves on when it comes; once all have come, each of them has the unit verified where it
matches.

Conditions are leaves, and so first labels of segments; in an ordered branch node they are children without an order.
A pattern may be added more than once (FiST against iFiST is about that); every copy has a key of its own.

Takes every pattern, ordered or not. Wins with ordered twigs, which `yfilter` cannot tell from others, and over `fist` the
more profiles are alike. It is slower than `yfilter`, three to ten times with 20,000 twigs: each candidate and each BranchID is
a profile's own, so that it takes several steps per profile where `yfilter` looks once at the twigs whose paths matched.
"""

from xsift.document.events cimport END, RecordedEvents
from xsift.engines.ifist.index cimport PLACE, Candidate, TableRow
from xsift.engines.ifist.run cimport IFiSTRun
from xsift.engines.ifist.scratch cimport IFiSTScratch
from xsift.engines.ifist.sequences cimport sequence_nodes
from xsift.native.types cimport int32_t, symbol_t

from xsift.engines.ifist.view import Moment, SegmentRow


cdef class IFiST(IFiSTRun):
    """Segments of profile sequences, shared between profiles, against the run-time stack."""

    name = "ifist"
    paper = "Kwon, Rao, Moon, Lee: Fast XML document filtering by sequencing twig patterns (TOIT 2009)"
    takes = "every pattern, ordered or not"
    wins = "ordered twigs with several branches, many of them alike"
    caveat = "unordered twigs keep all their segments active, so its filter is weaker for them"
    options = {"stack_test": ("recursive", "simple"), "refinement": ("progressive", "afterwards")}

    def __init__(self, **options):
        self.simple = self._option(options, "stack_test") == "simple"
        self.afterwards = self._option(options, "refinement") == "afterwards"
        self._no_options(options)

    # The paper's figures. Without a document, the structures are as they are when one begins.

    def segments(self, int key):
        """The profile's shareable segments, each a list of sequence nodes (Figures 12 and 13)."""
        self._check(key)
        found = []
        start = 1
        for pointer in self.terse_sequence(key):
            nodes = sequence_nodes(self.table[<int32_t>pointer - 1].segment, start, self.symbols)
            found.append(nodes)
            start += len(nodes)
        return found

    def profile_sequence(self, int key):
        """The profile sequence, put together again from the terse sequence (Figure 7a)."""
        return [node for segment in self.segments(key) for node in segment]

    def terse_sequence(self, int key):
        """The profile as pointers to rows of the segment table (Figure 14b)."""
        self._check(key)
        cdef int32_t first = self.profiles[key].first_place
        cdef int32_t i
        pointers = {self.places[i].position: self.places[i].segment + 1
                    for i in range(first, first + self.profiles[key].place_count)}
        return [pointer for _, pointer in sorted(pointers.items())]

    def segment_table(self, IFiSTScratch scratch=None):
        """The rows of the segment table with their candidate lists (Figure 14a)."""
        rows = []
        cdef int32_t number
        cdef TableRow* row
        cdef Candidate candidate
        for number in range(<int32_t>self.table.size()):
            row = &self.table[number]
            if row.users == 0:
                continue
            labels = " ".join(node.label for node in sequence_nodes(row.segment, 1, self.symbols))
            found = set()
            for candidate in row.candidates:
                found.add((candidate.profile, self.places[candidate.place].position + 1))
            if scratch is not None:
                for candidate in scratch.states[number].candidates:
                    found.add((candidate.profile, self.places[candidate.place & PLACE].position + 1))
            rows.append(SegmentRow(number + 1, labels, sorted(found)))
        return rows

    def sequence_index(self, IFiSTScratch scratch=None):
        """First label -> pointers to the segments that a document looks for (Figure 14c)."""
        index = {}
        cdef size_t i
        for i in range(self.buckets.size()):
            pointers = self._pointers(i, scratch)
            if pointers:
                index.setdefault(self._name(<symbol_t>(self.buckets[i].key >> 33)), []).extend(pointers)
        return {label: sorted(pointers) for label, pointers in sorted(index.items())}

    def _pointers(self, size_t bucket, IFiSTScratch scratch):
        cdef size_t at = 0
        found = []
        while at < self.buckets[bucket].looks.size():
            found.append(self.buckets[bucket].looks[at].what + 1)
            at += self.buckets[bucket].looks[at].how + 1
        at = 0
        while scratch is not None and at < scratch.active[bucket].size():
            found.append(scratch.active[bucket][at].what + 1)
            at += scratch.active[bucket][at].how + 1
        return found

    def moments(self, RecordedEvents document not None):
        """Reads a document and yields, after each end tag, what the structures look like: a `Moment`."""
        cdef IFiSTScratch scratch = self.new_scratch()
        scratch.counts.assign(len(self.counter_names), 0)
        self.begin(scratch)
        is_leaf = False
        for code in document.events:
            if code != END:
                self._feed_code(scratch, code)
                is_leaf = is_leaf or code >= 0
                continue
            stack = [self._name(scratch.stack[i].symbol) for i in range(scratch.depth)]
            # An open element has not yet told those above it how deep it goes.
            path_stack = [max(scratch.stack[j].deepest for j in range(i, scratch.depth)) - i - 1
                          for i in range(scratch.depth)]
            self._feed_code(scratch, code)
            yield Moment(stack[-1], stack, path_stack, ([stack[-1]] if is_leaf else []) + stack[-2:-1],
                         self.sequence_index(scratch), self.segment_table(scratch), self._branch_ids(scratch),
                         sorted(scratch.matched))
            is_leaf = False

    def _feed_code(self, IFiSTScratch scratch, int32_t code):
        self.feed(scratch, &code, 1)

    def _name(self, symbol_t symbol):
        return self.symbols.text(symbol) if symbol < len(self.symbols) else "*"

    def _branch_ids(self, IFiSTScratch scratch):
        """(Qid, position) -> the elements that the branch node at which the segment joins the twig maps to."""
        found = {}
        cdef int32_t key, position, pointer, row, level
        for key in range(<int32_t>self.profiles.size()):
            for position, pointer in enumerate(self.terse_sequence(key) if self.profiles[key].used else ()):
                row = self.table[pointer - 1].record_row
                numbers = [scratch.stack[level - 1].number for level in range(1, scratch.depth + 1)
                           if row >= 0 and scratch.entry(row, level) >= 0]
                if numbers:
                    found[key, position + 1] = numbers
        return found


cdef class FiST(IFiST):
    """iFiST without sharing: every profile has segments of its own."""

    name = "fist"
    paper = "Kwon, Rao, Moon, Lee: FiST: scalable XML document filtering by sequencing twig patterns (VLDB 2005)"
    wins = "never against ifist; it shows what sharing is worth"
    caveat = "time and memory grow with every profile, however alike they are"
    shares = False
