"""`xtrie`: substrings of element names in a trie.

Paper: Chee-Yong Chan, Pascal Felber, Minos Garofalakis, Rajeev Rastogi, "Efficient filtering of XML documents with
XPath expressions", ICDE 2002.

The idea. A run of names joined by `/` (a substring) is met less often in a document than a single name, and fewer
expressions have it. So expressions are cut into substrings; a trie of them, run like Aho and Corasick's, says at
each start tag which substrings end there; for each of these the Substring-Table lists the expressions that have it,
with the substring above and how many levels above it must be. Run-time information on the open path tells whether
it is, and what is satisfied below it: when all that must be below the first substring is, the expression matches.

The paper's terms here. *Substring-Table* `SubstringTable` with `Row` (ParentRow, RelLevel, Rank, NumChild, Next),
*Trie* with its *substring pointer* `alpha` and *max-suffix pointer* `beta` (all in index.pyx), *Node[l]*
`nodes`, the array *B*: see below; SEARCH `start_tag` and `end_tag`, MATCH-SUBSTRING `match_substring`,
PROPAGATE-UPDATE `propagate_update`, the bit-mask of expressions that have matched `is_matched`. *Eager* probing
looks up the table for every substring that is met; *lazy* probing only notes its level, unless it is some
expression's leaf substring: then the levels noted for the substrings above decide. XPE is "pattern" here.

B by columns. The paper's B[row, level] counts the leading children of a row's match at a level that have a
subtree-matching; for unordered matching it would be the set of such children. Here each child row has a word,
B[child], with a bit for each level of its parent: the child is satisfied below the parent's match there (if
children are ordered: and so are those before it, in order). One shift and one AND then do for all levels at once
what the paper's loops do for one after the other, so that deeply recursive documents cost little more than flat
ones, and a row may have any number of children. The other half of B, whether the row is matched at a level at all,
is `matched`: a word for each row (eager) or substring (lazy). Levels from 64 on are in a hash table. What an
element set is listed by its level, so that its end tag costs just that.

Probes. A look-up needs little of a row: whose levels it asks for, and which. So the rows of a substring are listed
apart, 20 bytes each (`Probe` in probes.pyx), in place of the chain that Next makes; a list that fits the processor's
caches takes half the time at 50,000 patterns. The list is grouped by parent and relative level, and one
answer does for a group ("probes spared"). Lazily, the levels of inner substrings are numbered without gaps, because the
words that hold them are what the look-ups read.

Deviations, each because the printed algorithm would give a wrong answer.
- *beta* may point to leaves of the trie, not only to its internal nodes. Else `//b` beside `//a/b` is missed in
  `<a><b/></a>`: the node `ab` would point to the root, as `b` is a leaf.
- *Order* is that of end tags. The definition (section 2) asks for increasing post-order of the elements that stand
  for the children of a step; MATCH-SUBSTRING compares with B at start tags. So it would miss `a[.//b]//c` in
  `<a><c><b/></c></a>`, where the start of c comes too early, and find `a[b/d]//c` in `<a><b><d/><c/></b></a>`,
  where the b has not ended. Here a child of ordered siblings that is satisfied is set aside (`deferred`) until the
  end tag of the element of its first step; then it counts if the children before it do. At one end tag later
  children come first, as in the paper's chains, so that one element does not serve two of them.
- *Redundancy* (PROPAGATE-UPDATE, steps 18 to 20: earlier matchings of a row that has just been satisfied, after
  `//`, are done with) holds where the row's parent does not mind the order: whatever is above an earlier matching
  has just been told. With ordered siblings it does not: in `a[.//c]//b[d]/e` (ordered) on
  `<a><b><b><d/><e/></b><c/><d/><e/></b></a>` the inner b is satisfied but ends before c; if that did away with the
  outer b, the match would be lost. So rows with ordered siblings are left alone. The marking is the paper's for
  eager probing; lazy probing stops at a child that is satisfied already, as it has no entries to mark.

Wildcards. `*` before a name is a distance between rows. One that branches is a row that is matched at every level.
One that ends a pattern waits: when the substring above is met, it is listed under the level where a start tag would
satisfy it (`waits`), so that a start tag costs nothing where nobody waits. Conditions: one that holds is a start tag
one level deeper, with a name that `*` does not match, the last of its substring: it leaves nothing to undo.

Takes every pattern, ordered or not, both in one index (hybrid). Wins with long patterns of few `//`; each pattern
has rows of its own, so that time grows with the number of patterns that share a leaf substring.
"""

from libcpp.algorithm cimport sort
from libcpp.vector cimport vector

from xsift.document.events cimport END, condition_symbol
from xsift.engines.base cimport Engine, Scratch
from xsift.engines.xtrie.index cimport (
    DOCUMENT, MAX_STEPS, ORDERED, ROOT, STAR, UNBOUNDED, WAITS, Row, SubstringTable, Trie, TrieNode,
)
from xsift.engines.xtrie.probes cimport NO_LIST, Probe
from xsift.engines.xtrie.scratch cimport Wait, XTrieScratch
from xsift.native.levels cimport LevelSet
from xsift.native.types cimport int32_t, int64_t, symbol_t, uint8_t, uint64_t
from xsift.xpath.pattern cimport Pattern
from xsift.xpath.symbols cimport Symbols

from xsift.errors import EngineError

cdef enum Counter:
    SUBSTRINGS_MATCHED
    INDEX_PROBES
    PROBES_SPARED
    PARTIAL_MATCHINGS
    UPDATES_PROPAGATED
    WAITS_FIRED
    ENTRIES_RESET


cdef class XTrie(Engine):
    """Substrings in a trie, a table of their places in the patterns."""

    name = "xtrie"
    paper = "Chan, Felber, Garofalakis, Rastogi: Efficient filtering of XML documents with XPath (ICDE 2002)"
    takes = "every pattern, ordered and unordered in one index"
    wins = "long patterns with few `//`; ordered twigs; deeply recursive documents"
    caveat = "time grows with the number of patterns that end in the same names; prefixes are not shared"
    options = {"probing": ("lazy", "eager")}
    counter_names = ("substrings matched", "index probes", "probes spared", "partial matchings", "updates propagated",
                     "waits fired", "entries reset")

    cdef Trie trie
    cdef SubstringTable table
    cdef Symbols symbols  # of the patterns, for people who look into the index
    cdef bint eager

    def __cinit__(self, *args, **options):
        self.trie = Trie()
        self.table = SubstringTable()

    def __init__(self, **options):
        self.eager = self.table.eager = self._option(options, "probing") == "eager"
        self._no_options(options)

    def refuses(self, Pattern pattern not None):
        if len(pattern) > MAX_STEPS:
            return f"{len(pattern)} steps: at most {MAX_STEPS}"
        return ""

    def add(self, Pattern pattern not None):
        reason = self.refuses(pattern)
        if reason:
            raise EngineError("refused-pattern", f"engine {self.name!r} refuses this pattern: {reason}")
        self.symbols = pattern.symbols
        return self.table.add_pattern(pattern, self.trie)

    def remove(self, int key):
        if not 0 <= key < <int>self.table.first_row.size() or self.table.first_row[key] == 0:
            raise EngineError("unknown-key", f"engine {self.name!r} has no pattern with key {key}")
        self.table.remove_pattern(key, self.trie)

    def __len__(self):
        return self.table.pattern_count

    def substring_table(self):
        """The rows of the Substring-Table, for people."""
        return self.table.describe(self.trie, self.symbols)

    def trie_nodes(self):
        """The nodes of the Trie by label, with alpha and beta, for people."""
        first_rows = {node: rows[0] for node, rows in self.table.chains().items()}
        return self.trie.describe(self.symbols, first_rows)

    def memory(self):
        cdef XTrieScratch scratch
        sizes = {"SubstringTable": self.table.bytes(), "Trie": self.trie.bytes()}
        for scratch in self.scratches:
            for name, size in scratch.memory().items():
                sizes[name] = sizes.get(name, 0) + size
        return sizes

    # SEARCH.

    cdef Scratch new_scratch(self):
        return XTrieScratch()

    cdef int begin(self, Scratch scratch) except -1 nogil:
        return self.begin_run(<XTrieScratch>scratch)

    cdef int begin_run(self, XTrieScratch scratch) except -1 nogil:
        cdef int32_t key
        for key in scratch.matched_keys:
            scratch.is_matched[key >> 6] = 0
        scratch.matched_keys.clear()
        self.make_room(scratch, 1)
        while scratch.level:
            self.forget_level(scratch)
        self.forget_waits(scratch, 0)
        scratch.matched.grow(self.table.rows.size() if self.eager else self.table.substring_levels)
        scratch.matched.set(DOCUMENT, 0)
        if self.table.twig_count:
            scratch.B.grow(self.table.rows.size())
            scratch.is_waiting.grow(self.table.rows.size())
        if self.table.ordered_count:
            scratch.is_deferred.grow(self.table.rows.size())
        scratch.is_matched.resize((self.table.first_row.size() + 63) >> 6, 0)
        scratch.nodes[0] = ROOT
        if self.trie.nodes[ROOT].stars != NO_LIST:
            self.wait_for_stars(scratch, self.table.probes.lists[self.trie.nodes[ROOT].stars].probes)
        return 0

    cdef int make_room(self, XTrieScratch scratch, int32_t level) except -1 nogil:
        """Room for a level, and for waits at the next."""
        cdef size_t size = level + 2
        if scratch.nodes.size() >= size:
            return 0
        size *= 2
        scratch.nodes.resize(size, ROOT)
        scratch.first_set.resize(size, 0)
        scratch.first_wait.resize(size, 0)
        scratch.updated.resize(size)
        scratch.deferred.resize(size)
        return 0

    cdef int feed(self, Scratch scratch, const int32_t* codes, size_t number) except -1 nogil:
        return self.run(<XTrieScratch>scratch, codes, number)

    cdef int run(self, XTrieScratch scratch, const int32_t* codes, size_t number) except -1 nogil:
        cdef size_t i
        for i in range(number):
            if codes[i] >= 0:
                self.start_tag(scratch, codes[i])
            elif codes[i] == END:
                self.end_tag(scratch)
            else:
                self.condition_holds(scratch, condition_symbol(codes[i]))
        return scratch.matched_keys.size() == <size_t>self.table.pattern_count

    cdef int finish(self, Scratch scratch, vector[int32_t]* keys) except -1 nogil:
        keys.insert(keys.end(), (<XTrieScratch>scratch).matched_keys.begin(),
                    (<XTrieScratch>scratch).matched_keys.end())
        return 0

    cdef int start_tag(self, XTrieScratch scratch, symbol_t symbol) except -1 nogil:
        cdef int32_t level = scratch.level + 1
        cdef int32_t node = self.trie.advance(scratch.nodes[scratch.level], symbol)
        self.make_room(scratch, level)
        scratch.level = level
        scratch.nodes[level] = node
        scratch.first_set[level] = <int32_t>scratch.set_here.size()
        scratch.first_wait[level] = <int32_t>scratch.waits.size()
        if <size_t>level < scratch.waits_every.size():
            self.fire_waits(scratch, level)
        while node != ROOT:
            if self.trie.nodes[node].rows:
                self.match_substring(scratch, node, level)
            node = self.trie.nodes[node].beta
        return 0

    cdef int condition_holds(self, XTrieScratch scratch, symbol_t condition) except -1 nogil:
        cdef int32_t node = self.trie.advance(scratch.nodes[scratch.level], condition)
        while node != ROOT:
            if self.trie.nodes[node].rows:
                self.match_substring(scratch, node, scratch.level + 1)
            node = self.trie.nodes[node].beta
        return 0

    cdef int end_tag(self, XTrieScratch scratch) except -1 nogil:
        cdef vector[int32_t]* deferred
        cdef int32_t row
        cdef size_t i
        if scratch.level == 0:
            return 0
        deferred = &scratch.deferred[scratch.level]
        if deferred.size() > 1:
            sort(deferred.begin(), deferred.end())
        for i in range(deferred.size(), 0, -1):
            row = deferred[0][i - 1]
            if not self.has_matched(scratch, row):
                scratch.levels.only(scratch.level + self.table.rows[row].level_min - 1)
                self.propagate_update(scratch, row, True)
        return self.forget_level(scratch)

    cdef int forget_level(self, XTrieScratch scratch) except -1 nogil:
        """Resets what the innermost element set, and nothing else."""
        cdef int32_t level = scratch.level
        cdef vector[int32_t]* updated = &scratch.updated[level]
        cdef vector[int32_t]* deferred = &scratch.deferred[level]
        cdef size_t i
        scratch.counts[ENTRIES_RESET] += (
            scratch.set_here.size() - scratch.first_set[level] + scratch.waits.size() - scratch.first_wait[level]
            + updated.size() + deferred.size())
        while <int32_t>scratch.set_here.size() > scratch.first_set[level]:
            scratch.matched.clear(scratch.set_here.back(), level)
            scratch.set_here.pop_back()
        for i in range(updated.size()):
            scratch.B.clear(updated[0][i], level)
        updated.clear()
        for i in range(deferred.size()):
            scratch.is_deferred.clear(deferred[0][i], level)
        deferred.clear()
        self.forget_waits(scratch, scratch.first_wait[level])
        scratch.level = level - 1
        return 0

    # MATCH-SUBSTRING.

    cdef int match_substring(self, XTrieScratch scratch, int32_t node, int32_t level) except -1 nogil:
        """The substring of a trie node ends at the start tag at `level`."""
        cdef const TrieNode* at = &self.trie.nodes[node]
        scratch.counts[SUBSTRINGS_MATCHED] += 1
        if at.leaves != NO_LIST:
            self.probe_leaves(scratch, self.table.probes.lists[at.leaves].probes, level)
        if at.inner_rows and not self.eager:
            self.set_matched(scratch, at.levels, level)
        elif at.inner_rows:
            self.probe_inner(scratch, self.table.probes.lists[at.inner].probes, level)
        if at.stars != NO_LIST:
            self.wait_for_stars(scratch, self.table.probes.lists[at.stars].probes)
        return 0

    cdef int probe_leaves(self, XTrieScratch scratch, const vector[Probe]& probes, int32_t level) except -1 nogil:
        """Looks up the rows of a leaf substring: those whose parent is where it must be have a subtree-matching."""
        cdef const Probe* probe = probes.data()
        cdef const Probe* end = probe + probes.size()
        cdef const Probe* end_of_group
        cdef int64_t spared = 0
        while probe < end:
            end_of_group = probe + probe.alike
            if not self.is_reachable(scratch, probe, level):
                spared += probe.alike - 1
                probe = end_of_group
            while probe < end_of_group:
                if not self.is_done(scratch, probe.pattern):
                    scratch.levels.only(level)
                    self.propagate_update(scratch, probe.row, False)
                probe += 1
        scratch.counts[INDEX_PROBES] += probes.size() - spared
        scratch.counts[PROBES_SPARED] += spared
        return 0

    cdef int probe_inner(self, XTrieScratch scratch, const vector[Probe]& probes, int32_t level) except -1 nogil:
        """Eager probing: notes which rows of a substring, of those that are no leaves, have a partial matching."""
        cdef const Probe* probe = probes.data()
        cdef const Probe* end = probe + probes.size()
        cdef const Probe* end_of_group
        cdef int64_t spared = 0
        while probe < end:
            end_of_group = probe + probe.alike
            if not self.is_reachable(scratch, probe, level):
                spared += probe.alike - 1
                probe = end_of_group
            while probe < end_of_group:
                if not self.is_done(scratch, probe.pattern):
                    self.set_matched(scratch, probe.row, level)
                probe += 1
        scratch.counts[INDEX_PROBES] += probes.size() - spared
        scratch.counts[PROBES_SPARED] += spared
        return 0

    cdef inline int set_matched(self, XTrieScratch scratch, int32_t place, int32_t level) except -1 nogil:
        scratch.matched.set(place, level)
        scratch.set_here.push_back(place)
        scratch.counts[PARTIAL_MATCHINGS] += 1
        return 0

    cdef inline bint is_done(self, XTrieScratch scratch, int32_t key) noexcept nogil:
        """Whether there is nothing more to find for a probe's pattern: it matches, or is gone."""
        return key < 0 or scratch.is_matched[key >> 6] >> (key & 63) & 1

    cdef inline bint has_matched(self, XTrieScratch scratch, int32_t row) noexcept nogil:
        return self.is_done(scratch, self.table.rows[row].pattern)

    cdef inline int is_reachable(self, XTrieScratch scratch, const Probe* probe, int32_t level) except -1 nogil:
        """Whether a row that is met at a level has a match of its parent where it must be: a partial matching."""
        if probe.flags & STAR:  # asked for itself alone; the rows of a pattern that is gone say nothing
            return probe.pattern >= 0 and self.is_reachable_through_star(scratch, probe.row, level)
        return scratch.matched.reaches(probe.parent, level, probe.level_min, probe.flags & UNBOUNDED)

    cdef int is_row_reachable(self, XTrieScratch scratch, int32_t row, int32_t level) except -1 nogil:
        cdef const Row* at = &self.table.rows[row]
        if self.has_matched(scratch, row):
            return False
        if self.table.rows[at.parent_row].flags & STAR:
            return self.is_reachable_through_star(scratch, row, level)
        return scratch.matched.reaches(self.table.rows[at.parent_row].levels, level, at.level_min, at.flags & UNBOUNDED)

    cdef int is_reachable_through_star(self, XTrieScratch scratch, int32_t row, int32_t level) except -1 nogil:
        scratch.probed.only(level)
        while True:
            self.climb(&scratch.probed, scratch, row)
            row = self.table.rows[row].parent_row
            if scratch.probed.empty() or not self.table.rows[row].flags & STAR:
                return not scratch.probed.empty()

    # PROPAGATE-UPDATE.

    cdef int climb(self, LevelSet* levels, XTrieScratch scratch, int32_t row) except -1 nogil:
        """From levels of a row to those levels of its parent row that are in its relative level."""
        cdef const Row* at = &self.table.rows[row]
        if self.table.rows[at.parent_row].flags & STAR:
            levels.climb_any(at.level_min, at.flags & UNBOUNDED)
        else:
            levels.climb(scratch.matched, self.table.rows[at.parent_row].levels, at.level_min, at.flags & UNBOUNDED)
        return 0

    cdef int propagate_update(self, XTrieScratch scratch, int32_t row, bint at_end) except -1 nogil:
        """A row has a subtree-matching at each of `levels`; at_end: the element of its first step ends now."""
        cdef const Row* at
        scratch.counts[UPDATES_PROPAGATED] += 1
        while True:
            at = &self.table.rows[row]
            if at.flags & ORDERED and not at_end:
                return self.defer(scratch, row)
            self.climb(&scratch.levels, scratch, row)
            if at_end and at.rank > 1 and self.table.rows[at.previous_sibling].flags & ORDERED:
                scratch.levels.keep(scratch.B, at.previous_sibling)
            at_end = False
            if scratch.levels.empty():
                return 0
            if at.parent_row == DOCUMENT:
                return self.pattern_matches(scratch, at.pattern)
            if self.table.rows[at.parent_row].num_child > 1 and not self.completes_parent(scratch, row):
                return 0
            row = at.parent_row
            if self.eager:
                self.drop_redundant(scratch, row)

    cdef int completes_parent(self, XTrieScratch scratch, int32_t row) except -1 nogil:
        """Updates B: the row is satisfied below its parent's `levels`. Keeps those where its siblings are, too."""
        cdef const Row* at = &self.table.rows[row]
        cdef int32_t sibling = at.previous_sibling
        cdef int32_t level
        scratch.levels.drop(scratch.B, row)
        scratch.levels.set_in(scratch.B, row)
        level = scratch.levels.next(0)
        while level >= 0:
            scratch.updated[level].push_back(row)
            level = scratch.levels.next(level + 1)
        if at.flags & ORDERED and at.rank < self.table.rows[at.parent_row].num_child:
            return False
        while sibling != row and not scratch.levels.empty():
            scratch.levels.keep(scratch.B, sibling)
            sibling = self.table.rows[sibling].previous_sibling
        return not scratch.levels.empty()

    cdef int drop_redundant(self, XTrieScratch scratch, int32_t row) except -1 nogil:
        """The row is satisfied at `levels`: nothing more is to be found below its matches there, or (`//`) above."""
        cdef const Row* at = &self.table.rows[row]
        if at.flags & STAR:
            return 0
        if at.flags & UNBOUNDED and not at.flags & ORDERED:
            scratch.matched.clear_up_to(row, scratch.levels.highest())
        else:
            scratch.levels.clear_in(scratch.matched, row)
        return 0

    cdef int defer(self, XTrieScratch scratch, int32_t row) except -1 nogil:
        """Sets a row with ordered siblings aside until the elements end that stand for its first step."""
        cdef const Row* at = &self.table.rows[row]
        cdef int32_t level = scratch.levels.next(0)
        cdef int32_t end_level
        while level >= 0:
            end_level = level - at.level_min + 1
            if not scratch.is_deferred.has(row, end_level) and self.is_row_reachable(scratch, row, level):
                scratch.is_deferred.set(row, end_level)
                scratch.deferred[end_level].push_back(row)
            level = scratch.levels.next(level + 1)
        return 0

    cdef int pattern_matches(self, XTrieScratch scratch, int32_t key) except -1 nogil:
        scratch.is_matched[key >> 6] |= <uint64_t>1 << (key & 63)
        scratch.matched_keys.push_back(key)
        return 0

    # `*` that ends a pattern.

    cdef int wait_for_stars(self, XTrieScratch scratch, const vector[Probe]& probes) except -1 nogil:
        """The substring that `*` rows hang on is met at the innermost level."""
        cdef const Probe* probe = probes.data()
        cdef const Probe* end = probe + probes.size()
        scratch.counts[INDEX_PROBES] += probes.size()
        while probe < end:
            if not self.is_done(scratch, probe.pattern) and (
                    not self.eager or scratch.matched.has(probe.parent, scratch.level)):
                self.wait(scratch, probe.row, scratch.level + probe.level_min)
            probe += 1
        return 0

    cdef int wait(self, XTrieScratch scratch, int32_t row, int32_t level) except -1 nogil:
        """Lists a `*` under the level of the start tags that satisfy it, until the innermost element ends.

        A `*` after `//` is satisfied by the first start tag far enough below, if by any. But if its place in an
        order counts, or there is more to find below it, each start tag is another case. Such a wait is listed once:
        what is there already is of an element further out, or of this one, so that it lasts at least as long.
        """
        cdef uint8_t every = self.table.rows[row].flags & ORDERED != 0 or self.table.rows[row].num_child != 0
        cdef vector[int32_t]* last
        if every:
            if scratch.is_waiting.has(row, level):
                return 0
            scratch.is_waiting.set(row, level)
        if scratch.waits_every.size() <= <size_t>level:
            scratch.waits_every.resize(level + 1, -1)
            scratch.waits_once.resize(level + 1, -1)
        last = &scratch.waits_every if every else &scratch.waits_once
        scratch.waits.push_back(Wait(row, level, last[0][level], every))
        last[0][level] = <int32_t>scratch.waits.size() - 1
        return 0

    cdef int fire_waits(self, XTrieScratch scratch, int32_t level) except -1 nogil:
        """A start tag at this level satisfies all that wait for one."""
        cdef int32_t wait = scratch.waits_every[level]
        cdef int32_t row
        while wait >= 0:
            row = scratch.waits[wait].row
            if not self.has_matched(scratch, row):
                self.star_matched(scratch, row, level)
                if self.table.rows[row].flags & UNBOUNDED:
                    self.wait(scratch, row, level + 1)
            wait = scratch.waits[wait].below
        wait = scratch.waits_once[level]
        scratch.waits_once[level] = -1
        while wait >= 0:
            if not self.has_matched(scratch, scratch.waits[wait].row):
                self.star_matched(scratch, scratch.waits[wait].row, level)
            wait = scratch.waits[wait].below
        return 0

    cdef int star_matched(self, XTrieScratch scratch, int32_t row, int32_t level) except -1 nogil:
        """The start tag at `level` stands for a `*`: a leaf, or one with `*`s below it, which wait from now on."""
        cdef const Row* rows = self.table.rows.data()
        cdef int32_t child = row + 1
        scratch.counts[WAITS_FIRED] += 1
        if rows[row].num_child == 0:
            scratch.levels.only(level)
            return self.propagate_update(scratch, row, False)
        while True:
            if rows[child].flags & WAITS:
                self.wait(scratch, child, level + rows[child].level_min)
            child = rows[child].previous_sibling
            if child == row + 1:
                return 0

    cdef int forget_waits(self, XTrieScratch scratch, int32_t first) except -1 nogil:
        """Takes back the waits from number `first` on; those of the first start tag may be gone already."""
        cdef Wait* wait
        cdef vector[int32_t]* last
        while <int32_t>scratch.waits.size() > first:
            wait = &scratch.waits.back()
            last = &scratch.waits_every if wait.every else &scratch.waits_once
            if last[0][wait.level] == <int32_t>scratch.waits.size() - 1:
                last[0][wait.level] = wait.below
            if wait.every:
                scratch.is_waiting.clear(wait.row, wait.level)
            scratch.waits.pop_back()
        return 0
