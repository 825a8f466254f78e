"""DocumentTree: a document as flat arrays, one entry for each element, built from its events.

Matching needs no tree. Showing which nodes matched, and verifying a match, does: parents, levels, ranks, extents, the
bytes that an element takes, and its path as people write it (`/nitf/body/p[3]`, as libxml2's getpath gives it).
"""

from cpython.unicode cimport PyUnicode_DecodeUTF8
from libcpp.algorithm cimport sort
from libcpp.string cimport string, to_string
from libcpp.vector cimport vector

from xsift.document.events cimport RecordedEvents, END, EventSource, condition_symbol
from xsift.document.names cimport ElementNames, NamedEvents
from xsift.document.reader cimport Reader
from xsift.native.tables cimport FlatMap, pack
from xsift.native.types cimport int32_t, int64_t, symbol_t, uint64_t


cdef class DocumentTree:
    """The elements of a document, numbered from 1 in document order."""

    def __init__(self, EventSource source not None):
        if isinstance(source, RecordedEvents):
            (<RecordedEvents>source).rewind()
        if isinstance(source, NamedEvents):
            self.names = (<NamedEvents>source).names
        elif isinstance(source, Reader):
            self.names = (<Reader>source).names
        with nogil:
            self._build(source)
        self.narrowed = source.narrowed
        self.conditions_are_sorted = False
        self.places.clear()
        self.labels.clear()
        self.by_symbol.clear()

    cdef int _build(self, EventSource source) except -1 nogil:
        cdef vector[int32_t] holders  # the element of each condition, in document order
        cdef vector[symbol_t] held
        cdef int32_t code, number = 0, ended = 0, level = 0
        cdef int32_t parent = 0  # the innermost open element
        cdef Py_ssize_t size, i
        self.symbols.clear()
        self.parents.clear()
        self.levels.clear()
        self.posts.clear()
        self.lasts.clear()
        self.starts.clear()
        self.stops.clear()
        while True:
            size = source.fill()
            if size == 0:
                break
            if source.keeps_positions and source.offsets.size() != source.codes.size():
                with gil:
                    raise ValueError("there must be one position for each event")
            for i in range(size):
                code = source.codes[i]
                if code >= 0:
                    number += 1
                    self.symbols.push_back(code)
                    self.parents.push_back(parent)
                    level += 1
                    self.levels.push_back(level)
                    parent = number
                    self.posts.push_back(0)
                    self.lasts.push_back(number)
                    if source.keeps_positions:
                        self.starts.push_back(source.offsets[i])
                        self.stops.push_back(0)
                elif parent == 0:
                    with gil:
                        raise ValueError("these are not the events of a document: nothing is open")
                elif code == END:
                    ended += 1
                    self.posts[parent - 1] = ended
                    self.lasts[parent - 1] = number
                    if source.keeps_positions:
                        self.stops[parent - 1] = source.offsets[i]
                    level -= 1
                    parent = self.parents[parent - 1]
                else:
                    holders.push_back(parent)
                    held.push_back(condition_symbol(code))
        if parent != 0:
            with gil:
                raise ValueError("these are not the events of a document: elements are left open")
        self._sort_conditions(holders, held)
        return 0

    cdef int _sort_conditions(self, const vector[int32_t]& holders, const vector[symbol_t]& held) except -1 nogil:
        """Brings the conditions together by element, in the order in which they came."""
        cdef size_t i
        cdef vector[int64_t] next
        self.condition_starts.assign(self.symbols.size() + 1, 0)
        self.conditions.resize(held.size())
        for i in range(holders.size()):
            self.condition_starts[holders[i]] += 1
        for i in range(self.symbols.size()):
            self.condition_starts[i + 1] += self.condition_starts[i]
        next = self.condition_starts
        for i in range(holders.size()):
            self.conditions[next[holders[i] - 1]] = held[i]
            next[holders[i] - 1] += 1
        return 0

    cdef int sort_conditions(self) except -1 nogil:
        cdef size_t i
        if self.conditions_are_sorted:
            return 0
        for i in range(self.symbols.size()):
            sort(self.conditions.begin() + self.condition_starts[i], self.conditions.begin() + self.condition_starts[i + 1])
        self.conditions_are_sorted = True
        return 0

    cdef bint holds(self, int32_t element, symbol_t condition) noexcept nogil:
        """Whether a condition holds for an element. The conditions must have been sorted."""
        cdef int64_t low = self.condition_starts[element - 1]
        cdef int64_t high = self.condition_starts[element]
        cdef int64_t middle
        cdef int64_t end = high
        while low < high:
            middle = (low + high) // 2
            if self.conditions[middle] < condition:
                low = middle + 1
            else:
                high = middle
        return low < end and self.conditions[low] == condition

    cdef int elements_of(self, symbol_t symbol, const int32_t** begin, const int32_t** end) except -1 nogil:
        cdef int64_t first
        if self.by_symbol.empty():
            self._index_symbols()
        first = self.symbol_starts.get(pack(0, symbol), <int64_t>self.by_symbol.size())
        begin[0] = self.by_symbol.data() + first
        end[0] = begin[0]
        while end[0] < self.by_symbol.data() + self.by_symbol.size() and self.symbols[end[0][0] - 1] == symbol:
            end[0] += 1
        return 0

    cdef int _index_symbols(self) except -1 nogil:
        cdef vector[uint64_t] pairs
        cdef size_t i
        cdef symbol_t symbol
        self.symbol_starts.clear()
        pairs.reserve(self.symbols.size())
        for i in range(self.symbols.size()):
            pairs.push_back(pack(self.symbols[i], <int32_t>i + 1))
        sort(pairs.begin(), pairs.end())
        for i in range(pairs.size()):
            symbol = <symbol_t>(pairs[i] >> 32)
            if i == 0 or <symbol_t>(pairs[i - 1] >> 32) != symbol:
                self.symbol_starts.put(pack(0, symbol), i)
            self.by_symbol.push_back(<int32_t>pairs[i])
        return 0

    def __len__(self):
        return self.symbols.size()

    cdef int32_t _index(self, object number) except -1:
        cdef object size = self.symbols.size()
        if not 0 < number <= size:
            raise IndexError(f"no element {number}: there are {size}")
        return number - 1

    def symbol(self, number):
        """The symbol of an element's name; 0 for a name that nobody asked for."""
        return self.symbols[self._index(number)]

    def parent(self, number):
        """The number of an element's parent; 0 for the root element."""
        return self.parents[self._index(number)]

    def level(self, number):
        """How deep an element is; the root element has level 1."""
        return self.levels[self._index(number)]

    def post(self, number):
        """An element's rank in post-order, from 1."""
        return self.posts[self._index(number)]

    def last(self, number):
        """The number of an element's last descendant; its own if it has none."""
        return self.lasts[self._index(number)]

    def span(self, number):
        """The bytes of an element, as offsets (start, end). An element from an entity has those of the reference."""
        if self.starts.empty() and not self.symbols.empty():
            raise ValueError("no positions were kept: the reader needs positions=True")
        index = self._index(number)
        return self.starts[index], self.stops[index]

    def conditions_of(self, number):
        """The symbols of the conditions that hold for an element."""
        cdef int32_t index = self._index(number)
        cdef int64_t i
        return [self.conditions[i] for i in range(self.condition_starts[index], self.condition_starts[index + 1])]

    def name(self, number):
        """An element's expanded name: `name` or `{uri}name`."""
        self._index(number)
        self._check_names()
        return self.names.name(number)

    def path(self, number):
        """An element's path, as libxml2 writes it: `/nitf/body/p[3]`; `*` in a default namespace."""
        cdef int32_t at = self._index(number) + 1
        cdef vector[int32_t] steps
        cdef string* path = &self.path_buffer
        cdef size_t i
        self._check_names()
        if self.labels.empty():
            self._find_places()
        path.clear()
        while at:
            steps.push_back(at - 1)
            at = self.parents[at - 1]
        for i in range(steps.size() - 1, <size_t>-1, -1):
            path.append(b"/", 1)
            path.append(self.labels[self.names.of_element[steps[i]]])
            if self.places[steps[i]]:
                path.append(b"[", 1)
                path.append(to_string(self.places[steps[i]]))
                path.append(b"]", 1)
        return PyUnicode_DecodeUTF8(path.data(), path.size(), NULL)

    def _check_names(self):
        if self.names is None or <size_t>self.names.of_element.size() != self.symbols.size():
            raise ValueError("no names were kept: the reader needs keep_names=True")

    cdef int _find_places(self) except -1:
        """Numbers elements among their siblings with the same label; `*` stands for any sibling."""
        cdef FlatMap[int32_t] totals
        cdef FlatMap[int32_t] counts
        cdef vector[int32_t] kinds  # of a name: 0 for "*", else what its label is numbered
        cdef dict numbers = {"*": 0}
        cdef int32_t number, kind, total, i
        cdef int32_t size = <int32_t>self.symbols.size()
        for i in range(<int32_t>self.names.names.size()):
            label = self.names.label(i)
            kinds.push_back(numbers.setdefault(label, len(numbers)))
            self.labels.push_back(label.encode())
        self.places.assign(size, 0)
        for number in range(size):
            kind = kinds[self.names.of_element[number]]
            _count(&totals, self.parents[number], 0)
            if kind:
                _count(&totals, self.parents[number], kind)
        for number in range(size):
            kind = kinds[self.names.of_element[number]]
            total = _count(&counts, self.parents[number], 0)
            if kind:
                total = _count(&counts, self.parents[number], kind)
            if totals.get(pack(self.parents[number], kind), 0) > 1:
                self.places[number] = total
        return 0


cdef int32_t _count(FlatMap[int32_t]* counts, int32_t parent, int32_t kind) except -1:
    cdef int32_t count = counts.get(pack(parent, kind), 0) + 1
    counts.put(pack(parent, kind), count)
    return count
