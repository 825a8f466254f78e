"""Rows: the subscriptions of a set as flat arrays: a row for each, and no Python objects.

What an expression means is decided here, once, when it is added: its patterns, what it selects, the program for what is left to evaluate. Whoever
matches, selects or explains later reads it from the row; nothing is parsed again, also not after a set was saved and
loaded.

Ids, expressions and patterns lie in blobs. Equal patterns are stored once, whatever the subscriptions are called. A row that is
removed stays where it is, marked, so that row numbers keep their meaning for matchers that were made before.
"""

from cpython.list cimport PyList_New, PyList_SET_ITEM
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libcpp.string cimport string
from libcpp.vector cimport vector

from sys import getswitchinterval

import numpy as np

from xsift.errors import SubscriptionError, XPathError
from xsift.xpath.meaning import Meaning, Selection

from xsift.matching.breath cimport LONGER, breathe, seconds
from xsift.native.saving cimport check_ends, from_numpy, table_from_numpy, table_to_numpy, to_numpy
from xsift.native.types cimport int8_t
from xsift.xpath.compiler cimport OUTCOME_ALWAYS, Compiler, Result
from xsift.xpath.formula cimport (
    SELECTS_ATTRIBUTE, SELECTS_ELEMENT, SELECTS_NODES, SELECTS_NOTHING, SELECTS_TEXT,
)

from xsift.xpath.pattern cimport Pattern, PatternNode
from xsift.xpath.symbols cimport Symbols

cdef enum:
    UNKNOWN = -1

_SELECTS = {
    SELECTS_NOTHING: "nothing",
    SELECTS_ELEMENT: "element",
    SELECTS_ATTRIBUTE: "attribute",
    SELECTS_TEXT: "text",
    SELECTS_NODES: "nodes",
}


cdef enum:
    ID_STRING_OVERHEAD = 64  # bytes of a Python string beside its characters, about
    MOST_ID_STRING_BYTES = 128 << 20
    AHEAD = 20
    WRITING = 1
    BREATH = 64  # rows after which we look whether other threads are to have the interpreter

cdef extern from *:
    void prefetch "__builtin_prefetch" (const void* address) nogil
    void prefetch_for "__builtin_prefetch" (const void* address, int writing) nogil


cdef class Rows:
    """The subscriptions that were added, in that order."""

    def __cinit__(self):
        self.most_id_string_bytes = MOST_ID_STRING_BYTES

    def add(self, str id, str text, Compiler compiler not None, *, bint ordered=False, int32_t mapping=0,
            bint refuse_residuals=False):
        """Adds a subscription. Raises SubscriptionError if the id cannot be used, XPathError if the text cannot."""
        cdef bytes key = utf8(id, "id")
        cdef bytes encoded = utf8(text, "expression")
        try:
            self.append(key, len(key), encoded, len(encoded), compiler, ordered, mapping, refuse_residuals)
        except XPathError as error:
            error.id = id
            raise

    def add_arrow(self, ids, texts, ordered, Compiler compiler not None, *, int32_t mapping=0, bint collect=False,
                  bint refuse_residuals=False):
        """Adds the subscriptions of Arrow arrays (large_string, large_string, boolean), without Python objects.

        Returns the (id, error) pairs of those that cannot be used; without `collect` the first error is raised, and what
        came before it stays.
        """
        cdef size_t id_offsets = ids.buffers()[1].address
        cdef size_t text_offsets = texts.buffers()[1].address
        cdef size_t id_data = ids.buffers()[2].address if ids.buffers()[2] is not None else 0
        cdef size_t text_data = texts.buffers()[2].address if texts.buffers()[2] is not None else 0
        cdef const int64_t* id_at = <const int64_t*>id_offsets + <Py_ssize_t>ids.offset
        cdef const int64_t* text_at = <const int64_t*>text_offsets + <Py_ssize_t>texts.offset
        cdef const uint8_t[::1] is_ordered = np.asarray(ordered, dtype=np.uint8)
        cdef const char* id_bytes = <const char*>id_data
        cdef const char* text_bytes = <const char*>text_data
        cdef double interval = getswitchinterval() * LONGER, kept_since = seconds()
        cdef Py_ssize_t i
        errors = []
        for i in range(len(ids)):
            if i % BREATH == 0:
                kept_since = breathe(kept_since, interval)
            try:
                self.append(id_bytes + id_at[i], id_at[i + 1] - id_at[i], text_bytes + text_at[i],
                            text_at[i + 1] - text_at[i], compiler, is_ordered[i], mapping, refuse_residuals)
            except (XPathError, SubscriptionError) as error:
                error.id = ids[i].as_py()
                error.row = i
                if not collect:
                    raise
                errors.append((error.id, error))
        return errors

    def remove(self, str id):
        """Removes the subscription with this id. Raises SubscriptionError if there is none."""
        cdef int32_t row = self.row_of(id)
        if row < 0:
            raise SubscriptionError("unknown-id", f"there is no subscription {id!r}", id=id)
        self.removed.edit(row)[0] = 1
        self.id_row.edit(self.row_id[row])[0] = -1
        self.count -= 1

    cdef int check_id(self, const char* id, size_t length) except -1:
        cdef int32_t number
        if length > MOST_ID_BYTES:
            shown = id[:40].decode("utf-8", "ignore")
            raise SubscriptionError("id-too-long", f"the id that begins with {shown!r} has {length:,} bytes",
                                    hint=f"an id has at most {MOST_ID_BYTES:,}")
        number = self.ids.find(id, length)
        if number >= 0 and self.id_row[number] >= 0:
            name = id[:length].decode("utf-8", "replace")
            raise SubscriptionError("duplicate-id", f"there is a subscription {name!r} already", id=name,
                                    hint="remove it first, or choose another id")
        return 0

    cdef int append(self, const char* id, size_t id_length, const char* text, size_t length, Compiler compiler,
                    bint ordered, int32_t mapping, bint refuse_residuals) except -1:
        cdef const Result* result
        cdef string attribute
        cdef int32_t number
        cdef size_t i
        self.check_id(id, id_length)
        compiler.compile_bytes(text, length, ordered)
        if refuse_residuals and not compiler.exact:
            raise XPathError("not-indexable", f"{(<bytes>compiler.reason).decode()} cannot be indexed",
                             hint="this set was made with residuals='refuse', and takes only what can be indexed whole")
        number = self.ids.add(id, id_length)
        if number == <int32_t>self.id_row.size():
            self.id_row.push_back(-1)
        for i in range(compiler.results.size()):
            result = &compiler.results[i]
            compiler.selected_attribute(result, &attribute)
            self.alternative_pattern.push_back(
                self.patterns.add(&compiler.keys[result.key_begin], result.key_end - result.key_begin))
            self.alternative_output.push_back(result.output)
            self.alternative_selects.push_back(result.selects)
            self.alternative_attribute.push_back(self.noted(attribute))
        self.alternative_ends.push_back(self.alternative_pattern.size())
        self.id_row.edit(number)[0] = <int32_t>self.row_id.size()
        self.row_id.push_back(number)
        self.row_mapping.push_back(mapping)
        self.texts.append(text, length)
        self.text_ends.push_back(self.texts.size())
        self.row_program.push_back(self.noted(compiler.program))
        self.row_residual.push_back(self.noted(compiler.residual))
        self.row_reason.push_back(self.noted(compiler.reason))
        self.flags.push_back((EXACT if compiler.exact else 0) | (ALWAYS if compiler.outcome == OUTCOME_ALWAYS else 0)
                             | (ORDERED if ordered else 0) | (LISTED if compiler.lists_nodes else 0))
        self.removed.push_back(0)
        self.count += 1
        return 0

    cdef int32_t noted(self, const string& text) except? -2:
        """The number of a text in `notes`; -1 for an empty one."""
        return self.notes.add(text.data(), text.size()) if text.size() else -1

    cdef bytes note(self, int32_t number):
        return self.notes.data_of(number)[:self.notes.length_of(number)] if number >= 0 else b""

    # What others read.

    def __len__(self):
        """The number of rows, removed ones included."""
        return self.row_id.size()

    def row_of(self, str id):
        """The row that has an id now, or -1."""
        cdef bytes key = id.encode("utf-8", "surrogatepass")
        cdef int32_t number = self.ids.find(key, len(key))
        return self.id_row[number] if number >= 0 else -1

    def row_among(self, str id, const uint8_t[::1] absent):
        """The row that an id has among the first rows, as many as `absent` is long, and not absent; or -1.

        An id may have had several rows, one after the other: whoever looks at an older state of the set finds its own here.
        """
        cdef bytes key = id.encode("utf-8", "surrogatepass")
        cdef int32_t number = self.ids.find(key, len(key))
        cdef int32_t row
        if number < 0:
            return -1
        if 0 <= self.id_row[number] < absent.shape[0] and not absent[self.id_row[number]]:
            return self.id_row[number]
        for row in range(<int32_t>absent.shape[0]):
            if self.row_id[row] == number and not absent[row]:
                return row
        return -1

    def id(self, int32_t row):
        """The id of a row."""
        cdef int32_t number = self.row_id[self._checked(row)]
        return self.ids.data_of(number)[:self.ids.length_of(number)].decode()

    def ids_of(self, const int32_t[::1] rows):
        """The ids of rows, as a list. A document may match thousands: their strings are made once, and kept."""
        cdef Py_ssize_t i, count = rows.shape[0]
        cdef list found = PyList_New(count)
        cdef PyObject** strings
        if self.id_strings.size() < <size_t>self.row_id.size():
            self.id_strings.resize(self.row_id.size(), NULL)
        strings = self.id_strings.data()
        for i in range(count):
            # Strings lie anywhere in memory, and so do the places that tell where: each is asked for before it is touched.
            if i + 2 * AHEAD < count:
                prefetch(&strings[rows[i + 2 * AHEAD]])
                prefetch_for(strings[rows[i + AHEAD]], WRITING)
            if strings[rows[i]] == NULL:
                PyList_SET_ITEM(found, i, self.new_id_string(rows[i]))
            else:
                Py_INCREF(<object>strings[rows[i]])
                PyList_SET_ITEM(found, i, <object>strings[rows[i]])
        return found

    cdef object new_id_string(self, int32_t row):
        cdef int32_t number = self.row_id[row]
        cdef object id = PyUnicode_DecodeUTF8(self.ids.data_of(number), self.ids.length_of(number), NULL)
        cdef Py_ssize_t size = ID_STRING_OVERHEAD + <Py_ssize_t>self.ids.length_of(number)
        if self.id_string_bytes + size <= self.most_id_string_bytes:
            self.id_string_bytes += size
            Py_INCREF(id)
            self.id_strings[row] = <PyObject*>id
        Py_INCREF(id)  # for the list, which takes it without asking
        return id

    def __dealloc__(self):
        cdef PyObject* id
        for id in self.id_strings:
            Py_XDECREF(id)

    def text(self, int32_t row):
        """The expression of a row, as it was given."""
        cdef int64_t begin = self.text_ends[self._checked(row) - 1] if row else 0
        return self.texts.data()[begin:self.text_ends[row]].decode()

    def ordered(self, int32_t row):
        """Whether the subscription was added with ordered=True."""
        return bool(self.flags[self._checked(row)] & ORDERED)

    def mapping(self, int32_t row):
        """The number of the namespaces that a row's expression was read with."""
        return self.row_mapping[self._checked(row)]

    def compiled(self, int32_t row, symbols):
        """What a row's expression comes to, as it was decided when the row was added."""
        cdef int64_t begin = self.alternative_ends[row - 1] if self._checked(row) else 0
        cdef uint8_t flags = self.flags[row]
        cdef int64_t i
        cdef int32_t pattern
        keys, selections = [], []
        for i in range(begin, self.alternative_ends[row]):
            pattern = self.alternative_pattern[i]
            keys.append(self.patterns.data_of(pattern)[:self.patterns.length_of(pattern)])
            selections.append(Selection(_SELECTS[self.alternative_selects[i]], self.alternative_output[i],
                                        self.note(self.alternative_attribute[i]).decode()))
        return Meaning(
            keys=keys,
            selections=selections,
            exact=bool(flags & EXACT),
            always=bool(flags & ALWAYS),
            never=not keys and not flags & ALWAYS,
            listed=bool(flags & LISTED),
            residual=self.note(self.row_residual[row]).decode(),
            program=self.note(self.row_program[row]),
            reason=self.note(self.row_reason[row]).decode(),
            symbols=symbols,
        )

    def _checked(self, int32_t row):
        if not 0 <= row < <int32_t>self.row_id.size():
            raise IndexError(f"there is no row {row}")
        return row

    def pattern_count(self):
        """The number of distinct patterns, of removed rows too."""
        return self.patterns.size()

    def pattern_key(self, int64_t number):
        """The key of a pattern (see xpath/pattern.pyx)."""
        if not 0 <= number < self.patterns.size():
            raise IndexError(f"there is no pattern {number}")
        return self.patterns.data_of(number)[:self.patterns.length_of(number)]

    def pattern_keys_of(self, int32_t row):
        """The keys of a row's patterns, each once."""
        cdef int64_t begin = self.alternative_ends[row - 1] if self._checked(row) else 0
        return list(dict.fromkeys(self.pattern_key(self.alternative_pattern[i])
                                  for i in range(begin, self.alternative_ends[row])))

    def broad_rows(self, Symbols symbols not None):
        """By row: 1 if one of its patterns has a condition that many elements may hold (Condition::is_broad)."""
        cdef vector[int8_t] is_broad = vector[int8_t](symbols.table.size(), UNKNOWN)  # by symbol
        cdef vector[uint8_t] patterns
        cdef PatternNode node
        cdef int64_t i, begin = 0
        cdef size_t row
        for i in range(self.patterns.size()):
            patterns.push_back(0)
            for node in Pattern.decode(self.patterns.data_of(i), self.patterns.length_of(i), symbols).nodes:
                if not node.is_condition:
                    continue
                if is_broad[node.symbol] == UNKNOWN:
                    is_broad[node.symbol] = symbols.condition_of(node.symbol).is_broad()
                if is_broad[node.symbol]:
                    patterns[i] = 1
        broad = np.zeros(self.row_id.size(), dtype=np.uint8)
        cdef uint8_t[::1] view = broad
        for row in range(self.row_id.size()):
            for i in range(begin, self.alternative_ends[row]):
                view[row] |= patterns[self.alternative_pattern[i]]
            begin = self.alternative_ends[row]
        return broad

    def flags_of_rows(self):
        """By row: RowFlag bits."""
        return to_numpy(self.flags.saved())

    def removed_rows(self):
        """By row: 1 if it was removed."""
        return to_numpy(self.removed.saved())

    def mappings_of_rows(self):
        """By row: the number of its namespaces."""
        return to_numpy(self.row_mapping.saved()).view(np.int32)

    def distinct_ids(self):
        """All ids ever used, as bytes and where each ends; and by row, which of them it has."""
        return (to_numpy(self.ids.blob.saved()), to_numpy(self.ids.ends.saved()).view(np.int64),
                to_numpy(self.row_id.saved()).view(np.int32))

    def expressions(self):
        """The expressions as bytes, and by row where each ends."""
        return to_numpy(self.texts.saved()), to_numpy(self.text_ends.saved()).view(np.int64)

    def saved(self, removed):
        """The first rows as arrays, for `restore`: as many as `removed` is long, which says what is removed of them."""
        cdef Py_ssize_t rows = len(removed)
        cdef int64_t alternatives = self.alternative_ends[rows - 1] if rows else 0
        cdef int64_t text = self.text_ends[rows - 1] if rows else 0
        return {
            **table_to_numpy("rows.ids", self.ids),
            **table_to_numpy("rows.patterns", self.patterns),
            **table_to_numpy("rows.notes", self.notes),
            "rows.row_id": to_numpy(self.row_id.saved())[:4 * rows],
            "rows.row_mapping": to_numpy(self.row_mapping.saved())[:4 * rows],
            "rows.texts": to_numpy(self.texts.saved())[:text],
            "rows.text_ends": to_numpy(self.text_ends.saved())[:8 * rows],
            "rows.flags": to_numpy(self.flags.saved())[:rows],
            "rows.removed": removed,
            "rows.alternative_ends": to_numpy(self.alternative_ends.saved())[:8 * rows],
            "rows.alternative_pattern": to_numpy(self.alternative_pattern.saved())[:4 * alternatives],
            "rows.alternative_output": to_numpy(self.alternative_output.saved())[:4 * alternatives],
            "rows.alternative_selects": to_numpy(self.alternative_selects.saved())[:alternatives],
            "rows.alternative_attribute": to_numpy(self.alternative_attribute.saved())[:4 * alternatives],
            "rows.row_program": to_numpy(self.row_program.saved())[:4 * rows],
            "rows.row_residual": to_numpy(self.row_residual.saved())[:4 * rows],
            "rows.row_reason": to_numpy(self.row_reason.saved())[:4 * rows],
        }

    def restore(self, arrays):
        """Becomes the rows that were saved; their arrays are used where they lie, and copied when they are changed.

        Raises ValueError if the arrays do not fit each other.
        """
        cdef int32_t row
        _check(arrays)
        table_from_numpy("rows.ids", self.ids, arrays)
        table_from_numpy("rows.patterns", self.patterns, arrays)
        table_from_numpy("rows.notes", self.notes, arrays)
        self.row_id.restore(from_numpy(arrays["rows.row_id"]))
        self.row_mapping.restore(from_numpy(arrays["rows.row_mapping"]))
        self.texts.restore(from_numpy(arrays["rows.texts"]))
        self.text_ends.restore(from_numpy(arrays["rows.text_ends"]))
        self.flags.restore(from_numpy(arrays["rows.flags"]))
        self.removed.restore(from_numpy(arrays["rows.removed"]))
        self.alternative_ends.restore(from_numpy(arrays["rows.alternative_ends"]))
        self.alternative_pattern.restore(from_numpy(arrays["rows.alternative_pattern"]))
        self.alternative_output.restore(from_numpy(arrays["rows.alternative_output"]))
        self.alternative_selects.restore(from_numpy(arrays["rows.alternative_selects"]))
        self.alternative_attribute.restore(from_numpy(arrays["rows.alternative_attribute"]))
        self.row_program.restore(from_numpy(arrays["rows.row_program"]))
        self.row_residual.restore(from_numpy(arrays["rows.row_residual"]))
        self.row_reason.restore(from_numpy(arrays["rows.row_reason"]))
        self.kept = arrays
        self.count = 0
        self.id_row.assign(self.ids.size(), -1)
        for row in range(<int32_t>self.row_id.size()):
            if not self.removed[row]:
                self.count += 1
                self.id_row.edit(self.row_id[row])[0] = row

    def memory(self):
        """Bytes held, by structure."""
        return {
            "ids": self.ids.bytes() + self.id_row.bytes() + self.row_id.bytes(),
            "id strings": self.id_string_bytes + self.id_strings.capacity() * sizeof(void*),
            "expressions": self.texts.bytes() + self.text_ends.bytes(),
            "patterns": self.patterns.bytes(),
            "rows": self.flags.bytes() + self.removed.bytes() + self.row_mapping.bytes() + self.row_program.bytes()
                    + self.row_residual.bytes()
                    + self.row_reason.bytes() + self.alternative_ends.bytes() + self.alternative_pattern.bytes()
                    + self.alternative_output.bytes() + self.alternative_selects.bytes()
                    + self.alternative_attribute.bytes(),
            "notes": self.notes.bytes(),
        }


def _check(arrays):
    """Raises ValueError unless saved arrays fit each other, so that no number in them leads outside."""
    rows = len(arrays["rows.flags"])
    sizes = {"row_id": 4, "row_mapping": 4, "text_ends": 8, "removed": 1, "alternative_ends": 8, "row_program": 4,
             "row_residual": 4, "row_reason": 4}
    for name, width in sizes.items():
        if len(arrays[f"rows.{name}"]) != width * rows:
            raise ValueError(f"rows.{name} has a wrong length")
    counts = {}
    for table in ("ids", "patterns", "notes"):
        counts[table] = len(arrays[f"rows.{table}.ends"]) // 8
    alternatives = len(arrays["rows.alternative_selects"])
    for name in ("pattern", "output", "attribute"):
        if len(arrays[f"rows.alternative_{name}"]) != 4 * alternatives:
            raise ValueError(f"rows.alternative_{name} has a wrong length")
    check_ends(arrays["rows.text_ends"], len(arrays["rows.texts"]), "rows.text_ends")
    check_ends(arrays["rows.alternative_ends"], alternatives, "rows.alternative_ends")
    for name, low, end in (("row_id", 0, counts["ids"]), ("row_mapping", 0, 2**31 - 1), ("row_program", -1, counts["notes"]),
                           ("row_residual", -1, counts["notes"]),
                           ("row_reason", -1, counts["notes"]), ("alternative_pattern", 0, counts["patterns"]),
                           ("alternative_output", -1, 2**31 - 1), ("alternative_attribute", -1, counts["notes"])):
        values = arrays[f"rows.{name}"].view(np.int32)
        if len(values) and not low <= values.min() <= values.max() < end:
            raise ValueError(f"rows.{name} has a value that cannot be")
    if alternatives and arrays["rows.alternative_selects"].max() > SELECTS_NODES:
        raise ValueError("rows.alternative_selects has a value that cannot be")


cpdef bytes utf8(str text, str what):
    """An id or an expression as UTF-8. Raises SubscriptionError or XPathError if it has half of a surrogate pair."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        if what == "expression":
            raise XPathError("bad-encoding", "the expression contains a lone surrogate", column=error.start + 1,
                             hint="it cannot be written in any encoding: remove it") from None
        raise SubscriptionError("bad-id", f"the id {text!r} contains a lone surrogate",
                                hint="it cannot be written in any encoding: remove it") from None
