"""Path-tuples of a document, read one after the other: `AFilter.tuples` and, with it, `Matcher.tuples`.

The document is read and the branch pushed only as far as the tuples are asked for. tuple_traversal.pyx finds them.
"""

from libcpp.vector cimport vector

from xsift.document.events cimport END, EventSource, RecordedEvents, condition_symbol
from xsift.engines.afilter.branch cimport StackBranch
from xsift.engines.afilter.labels cimport NONE
from xsift.engines.afilter.tuple_traversal cimport MOST_RECORDED, RECORD, TupleTraversal
from xsift.native.types cimport int32_t, int64_t

from xsift.errors import EngineError


cdef class PathTuples:
    """Iterates over the tuples of paths in a document: pairs of a pattern's key and a tuple.

    They come as they are found: by last element in document order. Memory is bounded, however many there are.
    """

    cdef TupleTraversal traversal
    cdef EventSource source
    cdef vector[int32_t] codes          # the chunk at hand: others may read the source meanwhile
    cdef size_t next_code
    cdef int32_t next_object            # of those that were just pushed, whose triggers are to be checked
    cdef size_t next_record
    cdef bint in_condition              # whether the trigger at hand is a condition
    cdef int64_t version                # of the index
    cdef int64_t most_work
    cdef vector[int32_t] key_of         # by path: the pattern, or NONE
    cdef dict path_of                   # by key

    def __init__(self, TupleTraversal traversal not None, EventSource source not None, dict path_of, steps):
        cdef int32_t path
        self.traversal = traversal
        self.source = source
        self.version = traversal.view.version
        self.most_work = -1 if steps is None else steps
        self.path_of = path_of
        self.key_of.assign(traversal.view.paths.size(), NONE)
        traversal.branch.clear(traversal.view.axes.nodes.size())
        traversal.branch.clock = 1
        traversal.begin()
        for key, path in path_of.items():
            self.key_of[path] = key
        for path in range(<int32_t>self.key_of.size()):
            if self.key_of[path] == NONE and traversal.view.paths[path].length:
                traversal.set_done(path)
        self.next_object = NONE
        if isinstance(source, RecordedEvents):
            (<RecordedEvents>source).rewind()

    def __iter__(self):
        return self

    def __next__(self):
        cdef int32_t path, step
        cdef size_t at
        self._check_index()
        while not self.find():
            if not self.advance():
                raise StopIteration
        at = self.next_record
        path = self.traversal.records[at]
        self.next_record += RECORD + self.traversal.view.paths[path].length
        return self.key_of[path], tuple([
            self.traversal.records[at + RECORD + step]
            for step in range(self.traversal.view.paths[path].length - self.in_condition)])

    def enough(self, int key):
        """No more tuples of this pattern."""
        self._check_index()
        self.traversal.set_done(self.path_of[key])

    @property
    def work(self):
        """Traversals and tuples so far."""
        return self.traversal.work

    @property
    def exhausted(self):
        """Whether the iteration ended because it took more than the `steps` that it was given."""
        return 0 <= self.most_work < self.traversal.work

    def _check_index(self):
        if self.traversal.view.version != self.version:
            raise EngineError("index-changed", "patterns were added or removed while tuples were being read",
                              hint="read the tuples to their end first, or ask for them again")

    cdef bint find(self) except -1:
        """Goes on with the trigger at hand up to the next tuple. Returns whether there is one."""
        cdef TupleTraversal traversal = self.traversal
        cdef int64_t most = self.most_work
        cdef int32_t path
        while self.next_record < traversal.records.size():
            path = traversal.records[self.next_record]
            if not traversal.paths[path].done:
                return True
            self.next_record += RECORD + traversal.view.paths[path].length
        if 0 <= most < traversal.work:
            return False
        if traversal.records.size() > MOST_RECORDED:
            traversal.forget_records()
            self.next_record = 0
        with nogil:
            while self.next_record == traversal.records.size():
                if not traversal.go_on() or 0 <= most < traversal.work:
                    return False
        return True

    cdef bint advance(self) except -1:
        """On to the next trigger. Returns False at the end of the document."""
        cdef StackBranch branch = self.traversal.branch
        cdef int32_t code
        if self.exhausted:
            return False
        while not 0 <= self.next_object < <int32_t>branch.objects.size():
            if self.in_condition:
                branch.pop_condition()
                self.in_condition = False
            self.next_object = NONE
            if self.next_code == self.codes.size():
                self.next_code = 0
                if self.source.fill() == 0:
                    self.codes.clear()
                    return False
                self.codes = self.source.codes
            code = self.codes[self.next_code]
            self.next_code += 1
            if code == END:
                branch.pop()
            elif code >= 0:
                branch.push(self.traversal.view.axes, code)
                self.next_object = branch.marks.back()
            else:
                code = condition_symbol(code)
                if <size_t>code < self.traversal.view.axes.nodes.size() \
                        and self.traversal.view.axes.nodes[code].assertions:
                    self.next_object = branch.push_condition(self.traversal.view.axes, code)
                    self.in_condition = True
        branch.clock += 1
        self.next_record = 0
        self.traversal.begin_trigger(self.next_object)
        self.next_object += 1
        return True
