"""afilter (work in progress)"""

from libcpp.vector cimport vector

from xsift.document.events cimport END, condition_symbol
from xsift.engines.afilter_branch cimport StackBranch
from xsift.engines.afilter_suffix cimport settle, trigger_check_suffixes
from xsift.engines.afilter_traverse cimport PATHS_MATCHED, AFilterScratch, SuffixState, trigger_check
from xsift.engines.afilter_view cimport PatternView
from xsift.engines.base cimport Scratch
from xsift.engines.paths cimport PathEngine
from xsift.native.types cimport int32_t, int64_t, symbol_t, uint32_t
from xsift.xpath.pattern cimport Pattern

from xsift.errors import EngineError

DEFAULT_CACHE_BYTES = 1 << 26


cdef class AFilter(PathEngine):
    """Paths triggered by their last step, traversed backwards over a stack a label."""

    name = "afilter"
    paper = "Candan, Hsiung, Chen, Tatemura, Agrawal: AFilter, adaptable XML filtering with prefix-caching and " \
            "suffix-clustering (VLDB 2006)"
    wins = ""
    caveat = ""
    options = {
        "deployment": ("pre-suf-late", "pre-suf-early", "pre-ns", "nc-suf", "nc-ns"),
        "cache": ("all", "failures"),
        "cache_bytes": (DEFAULT_CACHE_BYTES, 0, None),
    }
    counter_names = ("triggers", "triggers pruned", "traversals", "cache look-ups", "cache hits", "unfoldings",
                     "removals", "traversals pruned", "paths matched")

    cdef PatternView view
    cdef readonly str deployment
    cdef readonly str cache
    cdef readonly object cache_bytes

    def __init__(self, **options):
        self.deployment = self._option(options, "deployment")
        self.cache = self._option(options, "cache")
        self.cache_bytes = options.pop("cache_bytes", DEFAULT_CACHE_BYTES)
        if self.cache_bytes is not None and (type(self.cache_bytes) is not int or self.cache_bytes < 0):
            raise EngineError("bad-option", f"engine {self.name!r}: cache_bytes={self.cache_bytes!r}",
                              hint="a number of bytes from 0 on, or None for no limit")
        self._no_options(options)
        self.view = PatternView(has_prefixes=self.deployment.startswith("pre"), has_suffixes="suf" in self.deployment)

    # The index.

    def add(self, Pattern pattern not None):
        cdef int32_t key = PathEngine.add(self, pattern)
        if not pattern.linear:
            for path in self._paths_of_twig(key):
                self.view.mark_twig(path, True)
        return key

    def remove(self, int key):
        cdef int32_t path
        paths = self._paths_of_twig(key) if 0 <= key < <int>self.pattern_path.size() else ()
        PathEngine.remove(self, key)
        for path in paths:
            if not self.path_steps[path].empty() and self.path_users[path].empty():
                self.view.mark_twig(path, False)

    def _paths_of_twig(self, int32_t key):
        """The paths that a twig is made of; none for a linear pattern."""
        cdef size_t step
        return {self._path_of(key, step) for step in range(self.twigs[key].size()) if not self.twigs[key][step].children}

    cdef int insert_path(self, int32_t path) except -1:
        return self.view.insert(path, self.path_steps[path])

    cdef int delete_path(self, int32_t path) except -1:
        return self.view.delete(path, self.path_steps[path])

    def memory(self):
        cdef AFilterScratch scratch
        sizes = PathEngine.memory(self)
        sizes.update(self.view.memory())
        sizes["run-time StackBranch"] = sum((<AFilterScratch>scratch).branch.memory() for scratch in self.scratches)
        return sizes

    # The run.

    cdef Scratch new_scratch(self):
        return AFilterScratch(self.cache_bytes, self.cache == "failures", self.view.has_prefixes,
                              self.deployment == "pre-suf-early", self.deployment == "pre-suf-late")

    cdef int begin(self, Scratch scratch) except -1 nogil:
        return self.begin_run(<AFilterScratch>scratch)

    cdef int begin_run(self, AFilterScratch scratch) except -1 nogil:
        self.begin_join(scratch)
        scratch.branch.clear(self.view.axes.nodes.size())
        scratch.cache.clear()
        scratch.found.clear()
        scratch.removed.clear()
        if scratch.trigger >= <uint32_t>1 << 31:
            scratch.trigger = 0
            scratch.path_at.clear()
            scratch.states.clear()
        scratch.trigger += 1
        scratch.first_trigger = scratch.trigger
        scratch.path_at.resize(self.path_steps.size(), 0)
        scratch.is_removed.resize(self.path_steps.size(), 0)
        scratch.states.resize(self.view.suffixes.nodes.size(), SuffixState(0, 0, 0, 0))
        return 0

    cdef int feed(self, Scratch scratch, const int32_t* codes, size_t number) except -1 nogil:
        return self.run(<AFilterScratch>scratch, codes, number)

    cdef int run(self, AFilterScratch scratch, const int32_t* codes, size_t number) except -1 nogil:
        cdef size_t i
        cdef int32_t object
        for i in range(number):
            if codes[i] >= 0:
                self.element_starts(scratch, codes[i])
                scratch.branch.push(self.view.axes, codes[i])
                for object in range(scratch.branch.marks.back(), <int32_t>scratch.branch.objects.size()):
                    self.check(scratch, object)
            elif codes[i] == END:
                self.element_ends(scratch)
                scratch.branch.pop()
            else:
                self.condition_holds(scratch, condition_symbol(codes[i]))
        return 0

    cdef int condition_holds(self, AFilterScratch scratch, symbol_t condition) except -1 nogil:
        """A condition is a label of its own; its object lives only as long as its triggers are checked."""
        if <size_t>condition < self.view.axes.nodes.size() and self.view.axes.nodes[condition].assertions:
            self.check(scratch, scratch.branch.push_condition(self.view.axes, condition))
            scratch.branch.pop_condition()
        return 0

    cdef int check(self, AFilterScratch scratch, int32_t object) except -1 nogil:
        cdef size_t i
        cdef int32_t path
        scratch.trigger += 1
        if self.view.has_suffixes:
            trigger_check_suffixes(self.view, scratch, object)
        else:
            trigger_check(self.view, scratch, object)
        scratch.counts[PATHS_MATCHED] += scratch.found.size()
        for i in range(scratch.found.size()):
            path = scratch.found[i]
            self.path_matched(scratch, path)
            if self.view.has_suffixes and not self.view.in_twig[path]:
                settle(self.view, scratch, path)
        scratch.found.clear()
        return 0
