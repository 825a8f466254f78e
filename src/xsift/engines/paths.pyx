"""PathEngine: what engines of linear paths share. It gives them twigs.

XFilter, YFilter, AFilter, Index-Filter and predicate-based filtering are about linear paths. A twig is
decomposed into its root-to-leaf paths: equal paths of different patterns are one path. The engine matches
paths, and reports where they do; join.pyx finds out which twigs follow from that.

It cannot see order: a pattern with ordered=True in which some step has two children is refused.
"""

from libcpp.string cimport string
from libcpp.vector cimport vector

from xsift.xpath.pattern cimport Pattern, PatternNode

from xsift.errors import EngineError

cdef extern from "bits.hpp" namespace "xsift" nogil:
    size_t SLACK
    int32_t* take_bits(uint64_t* words, size_t count, int32_t base, int32_t* to)

cdef enum:
    TWIG = -1
    FREE = -2
    MOST_NOTES = 1 << 20  # the default of note_limit


cdef class PathScratch(Scratch):
    """The run-time state that path engines share."""

    def __cinit__(self, BranchIndex branches not None, *args, **options):
        self.join = TwigJoin(branches)


cdef class PathEngine(Engine):
    """Base of the engines of linear paths."""

    takes = "every unordered pattern; twigs through the join of path matches"

    def __cinit__(self, *args, **options):
        self.branches = BranchIndex()
        self.note_limit = MOST_NOTES

    def refuses(self, Pattern pattern not None):
        if pattern.ordered:
            return "ordered twigs: a join of path matches does not see the order of branches"
        return ""

    def add(self, Pattern pattern not None):
        reason = self.refuses(pattern)
        if reason:
            raise EngineError("refused-pattern", f"engine {self.name!r} refuses {pattern}: {reason}")
        cdef int32_t key = self._new_key()
        cdef vector[int32_t] leaf_paths
        cdef int32_t path, step, i
        if pattern.linear:
            path = self._path_to(pattern, <int32_t>pattern.nodes.size() - 1)
            self.path_uses[path].pattern = key
            self.pattern_path[key] = path
        else:
            leaf_paths.resize(pattern.nodes.size(), -1)
            for step in range(<int32_t>pattern.nodes.size()):
                if pattern.nodes[step].first_child < 0:
                    leaf_paths[step] = self._path_to(pattern, step)
            self.branches.add(key, pattern, leaf_paths)
            for i in range(self.branches.twig_paths.count(key)):
                self.path_uses[self.branches.twig_paths.data(key)[i]].twigs += 1
            self.pattern_path[key] = TWIG
            self.twig_count += 1
        self.pattern_count += 1
        return key

    def remove(self, int key):
        if not 0 <= key < <int>self.pattern_path.size() or self.pattern_path[key] == FREE:
            raise EngineError("unknown-key", f"engine {self.name!r} has no pattern with key {key}")
        cdef int32_t path = self.pattern_path[key]
        if path >= 0:
            self.path_uses[path].pattern = -1
            self._drop_if_unused(path)
        else:
            paths = self._twig_paths(key)
            self.branches.remove(key)
            for path in paths:
                self.path_uses[path].twigs -= 1
                self._drop_if_unused(path)
            self.twig_count -= 1
        self.pattern_path[key] = FREE
        self.free_keys.give_back(key)
        self.pattern_count -= 1

    def _twig_paths(self, int32_t key):
        """The paths that a twig is made of; none for a linear pattern."""
        if self.pattern_path[key] != TWIG:
            return []
        return [self.branches.twig_paths.data(key)[i] for i in range(self.branches.twig_paths.count(key))]

    def __len__(self):
        return self.pattern_count

    def memory(self):
        cdef PathScratch scratch
        cdef int64_t paths = 0
        cdef size_t i
        for i in range(self.path_steps.size()):
            paths += self.path_steps[i].capacity() * sizeof(PathStep) + sizeof(vector[PathStep])
        return {"paths": paths + self.path_keys.bytes() + self.path_uses.capacity() * sizeof(PathUse),
                "twigs": self.branches.bytes() + self.pattern_path.capacity() * 4,
                "run-time join": sum([scratch.join.bytes() + 4 * scratch.room.capacity()
                                      for scratch in self.scratches])}

    def counters(self):
        cdef PathScratch scratch
        totals = Engine.counters(self)
        totals["twigs evaluated"] = sum([scratch.join.evaluated for scratch in self.scratches])
        return totals

    # The decomposition.

    cdef int insert_path(self, int32_t path) except -1:
        raise NotImplementedError(type(self).__name__)

    cdef int delete_path(self, int32_t path) except -1:
        raise NotImplementedError(type(self).__name__)

    def _new_key(self):
        cdef int32_t key = self.free_keys.take(self.pattern_path.size())
        if <size_t>key == self.pattern_path.size():
            self.pattern_path.push_back(FREE)
        return key

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
            self.path_uses.push_back(PathUse(-1, 0))
        if self.path_steps[path].empty():
            self.path_steps[path] = steps
            self.insert_path(path)
        return path

    def _drop_if_unused(self, int32_t path):
        if self.path_uses[path].pattern < 0 and self.path_uses[path].twigs == 0:
            self.delete_path(path)
            self.path_steps[path].clear()
            self.path_steps[path].shrink_to_fit()

    # While a document is read.

    cdef int begin(self, Scratch scratch) except -1 nogil:
        return self.begin_join(<PathScratch>scratch)

    cdef int begin_join(self, PathScratch scratch) except -1 nogil:
        scratch.epoch += 1
        if scratch.epoch == 0:
            scratch.epoch = 1
        scratch.join.matched.assign((self.pattern_path.size() >> 6) + 1, 0)
        if self.twig_count:
            scratch.join.begin(self.path_steps.size(), self.note_limit)
        return 0

    cdef int finish(self, Scratch scratch, vector[int32_t]* keys) except -1 nogil:
        return self.finish_join(<PathScratch>scratch, keys)

    cdef int finish_join(self, PathScratch scratch, vector[int32_t]* keys) except -1 nogil:
        if self.twig_count:
            scratch.join.evaluate()
        return self.collect_keys(scratch, keys)

    cdef int collect_keys(self, PathScratch scratch, vector[int32_t]* keys) except -1 nogil:
        cdef vector[uint64_t]* matched = &scratch.join.matched
        scratch.room.resize(self.pattern_path.size() + SLACK)
        keys.insert(keys.end(), scratch.room.data(), take_bits(matched.data(), matched.size(), 0, scratch.room.data()))
        return 0
