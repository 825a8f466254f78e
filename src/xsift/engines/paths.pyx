"""PathEngine: what engines of linear paths share. It gives them twigs.

XFilter, YFilter, AFilter, Index-Filter and predicate-based filtering are about linear paths. A twig is
decomposed into its root-to-leaf paths (equal paths of different patterns are one path), the engine matches
paths, and here the path matches are joined on the elements that stand for the branching steps.

The join is incremental. When a path matches, its leaf is the innermost open element, so every element that can stand for
a branching step above it is still open: the stack of open elements tells which of them the steps between allow. Each such
element notes that one more child of the branching step is satisfied below it. When all are, the branching step itself is
satisfied there, and the same goes on towards the root. What an element noted is forgotten when it is closed. Twigs have no
constraint across branches other than the shared element, so this is exact.

It cannot see order: a pattern with ordered=True in which some step has two children is refused.
"""

from libcpp.string cimport string
from libcpp.vector cimport vector

from xsift.native.tables cimport pack
from xsift.xpath.pattern cimport CHILD, DESCENDANT, Pattern, PatternNode

from xsift.errors import EngineError

cdef enum:
    WORD = 64  # children of a branching step that one word of bits can note
    LEVEL_BITS = 24
    TWIG = -1
    FREE = -2


cdef class PathScratch(Scratch):
    """The run-time state that the join needs; an engine's own scratch derives from it."""


cdef class PathEngine(Engine):
    """Base of the engines of linear paths."""

    takes = "every unordered pattern; twigs through the join of path matches"

    def refuses(self, Pattern pattern not None):
        if pattern.ordered:
            return "ordered twigs: a join of path matches does not see the order of branches"
        return ""

    def add(self, Pattern pattern not None):
        reason = self.refuses(pattern)
        if reason:
            raise EngineError("refused-pattern", f"engine {self.name!r} refuses {pattern}: {reason}")
        cdef int32_t key = self._new_key()
        cdef int32_t leaf
        if pattern.linear:
            self.pattern_path[key] = self._path_to(pattern, <int32_t>pattern.nodes.size() - 1)
            self.path_pattern[self.pattern_path[key]] = key
        else:
            self._add_twig(key, pattern)
            for leaf in range(<int32_t>pattern.nodes.size()):
                if pattern.nodes[leaf].first_child < 0:
                    self._add_user(key, leaf, self._path_to(pattern, leaf))
            self.twig_count += 1
        self.pattern_count += 1
        return key

    def remove(self, int key):
        if not 0 <= key < <int>self.pattern_path.size() or self.pattern_path[key] == FREE:
            raise EngineError("unknown-key", f"engine {self.name!r} has no pattern with key {key}")
        cdef int32_t leaf
        cdef int32_t path = self.pattern_path[key]
        if path >= 0:
            self.path_pattern[path] = -1
            self._drop_if_unused(path)
        else:
            for leaf in range(<int32_t>self.twigs[key].size()):
                if self.twigs[key][leaf].children == 0:
                    self._remove_user(key, leaf)
            self.twigs[key].clear()
            self.twigs[key].shrink_to_fit()
            self.twig_count -= 1
        self.pattern_path[key] = FREE
        self.free_keys.push_back(key)
        self.pattern_count -= 1

    def __len__(self):
        return self.pattern_count

    def memory(self):
        cdef int64_t paths = 0
        cdef int64_t twigs = 0
        cdef size_t i
        for i in range(self.path_steps.size()):
            paths += self.path_steps[i].capacity() * sizeof(PathStep) + sizeof(vector[PathStep])
            twigs += self.path_users[i].capacity() * sizeof(PathUser) + sizeof(vector[PathUser])
        for i in range(self.twigs.size()):
            twigs += self.twigs[i].capacity() * sizeof(TwigStep) + sizeof(vector[TwigStep])
        return {"paths": paths + self.path_keys.bytes() + self.path_pattern.capacity() * 4,
                "twigs": twigs + self.user_index.bytes() + self.pattern_path.capacity() * 4}

    # The decomposition.

    cdef int insert_path(self, int32_t path) except -1:
        raise NotImplementedError(type(self).__name__)

    cdef int delete_path(self, int32_t path) except -1:
        raise NotImplementedError(type(self).__name__)

    def _new_key(self):
        cdef int32_t key
        if self.free_keys.size():
            key = self.free_keys.back()
            self.free_keys.pop_back()
            return key
        self.pattern_path.push_back(TWIG)
        self.twigs.push_back(vector[TwigStep]())
        return <int32_t>self.pattern_path.size() - 1

    def _path_to(self, Pattern pattern, int32_t leaf):
        """The number of the path from the pattern's first step to `leaf`; the engine is told if it is new."""
        cdef vector[PathStep] reversed_steps
        cdef vector[PathStep] steps
        cdef string key
        cdef int32_t node = leaf
        cdef int32_t path
        cdef PatternNode at
        cdef char flags
        cdef PathStep step
        while node >= 0:
            at = pattern.nodes[node]
            reversed_steps.push_back(PathStep(at.symbol, at.axis, at.is_condition))
            node = at.parent
        while reversed_steps.size():
            step = reversed_steps.back()
            reversed_steps.pop_back()
            steps.push_back(step)
            flags = step.axis | (step.is_condition << 1)
            key.append(<const char*>&step.symbol, sizeof(symbol_t))
            key.append(&flags, 1)
        path = self.path_keys.add(key.data(), key.size())
        if path == <int32_t>self.path_steps.size():
            self.path_steps.push_back(vector[PathStep]())
            self.path_pattern.push_back(-1)
            self.path_users.push_back(vector[PathUser]())
        if self.path_steps[path].empty():
            self.path_steps[path] = steps
            self.insert_path(path)
        return path

    def _drop_if_unused(self, int32_t path):
        if self.path_pattern[path] < 0 and self.path_users[path].empty():
            self.delete_path(path)
            self.path_steps[path].clear()
            self.path_steps[path].shrink_to_fit()

    def _add_twig(self, int32_t key, Pattern pattern):
        cdef int32_t index, child
        cdef TwigStep step
        self.pattern_path[key] = TWIG
        self.twigs[key].reserve(pattern.nodes.size())
        for node in pattern.nodes:
            step = TwigStep(node.symbol, node.parent, -1, 0, 0, node.axis, node.is_condition)
            child = node.first_child
            while child >= 0:
                step.children += 1
                child = pattern.nodes[child].next_sibling
            if step.children > 1:
                step.branch = self.next_word
                self.next_word += (step.children + WORD - 1) // WORD
            self.twigs[key].push_back(step)
        for index in range(<int32_t>pattern.nodes.size()):
            child = pattern.nodes[index].first_child
            step.child_number = 0
            while child >= 0:
                self.twigs[key][child].child_number = step.child_number
                step.child_number += 1
                child = pattern.nodes[child].next_sibling

    def _add_user(self, int32_t key, int32_t leaf, int32_t path):
        """Notes that the twig needs the path; users with the same branching step stand together for path_matched."""
        cdef int32_t branch = self.twigs[key][leaf].parent
        cdef int32_t depth = 0
        while self.twigs[key][branch].branch < 0:
            branch = self.twigs[key][branch].parent
        while branch >= 0:
            depth += 1
            branch = self.twigs[key][branch].parent
        self.user_index.put(pack(key, leaf), <int32_t>self.path_users[path].size())
        self.path_users[path].push_back(PathUser(key, leaf, depth))

    def _remove_user(self, int32_t key, int32_t leaf):
        cdef int32_t path = self._path_of(key, leaf)
        cdef int32_t place = self.user_index.get(pack(key, leaf), -1)
        cdef PathUser last = self.path_users[path].back()
        self.path_users[path][place] = last
        self.user_index.put(pack(last.key, last.leaf), place)
        self.path_users[path].pop_back()
        self.user_index.erase(pack(key, leaf))
        self._drop_if_unused(path)

    def _path_of(self, int32_t key, int32_t leaf):
        cdef string encoded
        cdef vector[int32_t] upwards
        cdef char flags
        cdef int32_t step = leaf
        while step >= 0:
            upwards.push_back(step)
            step = self.twigs[key][step].parent
        while upwards.size():
            step = upwards.back()
            upwards.pop_back()
            flags = self.twigs[key][step].axis | (self.twigs[key][step].is_condition << 1)
            encoded.append(<const char*>&self.twigs[key][step].symbol, sizeof(symbol_t))
            encoded.append(&flags, 1)
        return self.path_keys.find(encoded.data(), encoded.size())

    # The join.

    cdef int begin(self, Scratch scratch) except -1 nogil:
        return self.begin_join(<PathScratch>scratch)

    cdef int begin_join(self, PathScratch scratch) except -1 nogil:
        while scratch.open.size():
            self.pop_element(scratch)
        scratch.matched.clear()
        scratch.matched_at.resize(self.pattern_path.size(), 0)
        scratch.epoch += 1
        if scratch.epoch == 0:  # wrapped after 2^32 documents: old epochs must not look like new ones
            scratch.matched_at.assign(self.pattern_path.size(), 0)
            scratch.epoch = 1
        return 0

    cdef int finish(self, Scratch scratch, vector[int32_t]* keys) except -1 nogil:
        keys.insert(keys.end(), (<PathScratch>scratch).matched.begin(), (<PathScratch>scratch).matched.end())
        return 0

    cdef int push_element(self, PathScratch scratch, symbol_t symbol) except -1 nogil:
        scratch.open.push_back(symbol)
        if scratch.touched.size() < scratch.open.size():
            scratch.touched.resize(scratch.open.size())
        return 0

    cdef void pop_element(self, PathScratch scratch) noexcept nogil:
        cdef vector[uint64_t]* touched
        if scratch.open.empty():
            return  # twigs were added in the middle of a document; begin() puts that right
        touched = &scratch.touched[scratch.open.size() - 1]
        while touched.size():
            scratch.satisfied.erase(touched.back())
            touched.pop_back()
        scratch.open.pop_back()

    cdef int path_matched(self, PathScratch scratch, int32_t path) except -1 nogil:
        cdef int32_t previous = -1
        cdef PathUser user
        cdef size_t i
        if self.path_pattern[path] >= 0:
            self.match_key(scratch, self.path_pattern[path])
        for i in range(self.path_users[path].size()):
            user = self.path_users[path][i]
            if scratch.matched_at[user.key] == scratch.epoch:
                continue
            self.leaf_matched(scratch, user, user.branch_step == previous)
            previous = user.branch_step
        return 0

    cdef int leaf_matched(self, PathScratch scratch, PathUser user, bint reuse_levels) except -1 nogil:
        """Marks the leaf on every open element that can stand for the nearest branching step above it.

        Users of one path with the same branching step have the same steps in between, so the levels that were found for one
        serve the next.
        """
        cdef const TwigStep* steps = self.twigs[user.key].data()
        cdef int32_t child = user.leaf
        cdef int32_t level
        cdef size_t i
        if not reuse_levels:
            scratch.levels.clear()
            scratch.levels.push_back(<int32_t>scratch.open.size() + (1 if steps[child].is_condition else 0))
        while True:
            if not reuse_levels:
                self.climb(scratch, steps, child)
            if steps[steps[child].parent].branch >= 0:
                break
            child = steps[child].parent
        # child_satisfied climbs further from each level, so the levels found here are set aside meanwhile.
        cdef vector[int32_t] levels
        levels.swap(scratch.levels)
        for i in range(levels.size()):
            level = levels[i]
            self.child_satisfied(scratch, user.key, child, level)
        scratch.levels.swap(levels)
        return 0

    cdef int climb(self, PathScratch scratch, const TwigStep* steps, int32_t step) except -1 nogil:
        """Turns `levels`, where `step` can be, into those where its parent can be. Levels descend."""
        cdef symbol_t wanted = steps[steps[step].parent].symbol
        cdef int32_t level
        cdef size_t i
        scratch.above.clear()
        if scratch.levels.size() and steps[step].axis == DESCENDANT:
            for level in range(scratch.levels[0] - 1, 0, -1):
                if wanted == 0 or scratch.open[level - 1] == wanted:
                    scratch.above.push_back(level)
        elif scratch.levels.size():
            for i in range(scratch.levels.size()):
                level = scratch.levels[i] - 1
                if level >= 1 and (wanted == 0 or scratch.open[level - 1] == wanted):
                    scratch.above.push_back(level)
        scratch.levels.swap(scratch.above)
        return 0

    cdef int child_satisfied(self, PathScratch scratch, int32_t key, int32_t child, int32_t level) except -1 nogil:
        """A child of a branching step is satisfied below the open element at `level`, which can stand for the step."""
        cdef const TwigStep* steps = self.twigs[key].data()
        cdef int32_t branch = steps[child].parent
        cdef uint64_t word = (<uint64_t>(steps[branch].branch + steps[child].child_number // WORD) << LEVEL_BITS) | level
        cdef uint64_t bit = <uint64_t>1 << (steps[child].child_number % WORD)
        cdef uint64_t bits = scratch.satisfied.get(word, 0)
        cdef uint64_t full
        cdef int32_t rest, i
        cdef size_t j
        if bits & bit:
            return 0
        if bits == 0:
            scratch.touched[level - 1].push_back(word)
        scratch.satisfied.put(word, bits | bit)
        i = 0
        rest = steps[branch].children
        while rest > 0:
            full = ~<uint64_t>0 if rest >= WORD else (<uint64_t>1 << rest) - 1
            word = (<uint64_t>(steps[branch].branch + i) << LEVEL_BITS) | level
            if scratch.satisfied.get(word, 0) != full:
                return 0
            rest -= WORD
            i += 1
        # The branching step is satisfied at `level`: on to the next one above, or to the top.
        scratch.levels.clear()
        scratch.levels.push_back(level)
        while steps[branch].parent >= 0:
            self.climb(scratch, steps, branch)
            if steps[steps[branch].parent].branch >= 0:
                break
            branch = steps[branch].parent
        cdef vector[int32_t] levels
        levels.swap(scratch.levels)
        if steps[branch].parent < 0:
            for j in range(levels.size()):
                if steps[branch].axis == DESCENDANT or levels[j] == 1:
                    return self.match_key(scratch, key)
            return 0
        for j in range(levels.size()):
            self.child_satisfied(scratch, key, branch, levels[j])
            if scratch.matched_at[key] == scratch.epoch:
                return 0
        return 0

    cdef int match_key(self, PathScratch scratch, int32_t key) except -1 nogil:
        if scratch.matched_at[key] != scratch.epoch:
            scratch.matched_at[key] = scratch.epoch
            scratch.matched.push_back(key)
        return 0
