"""Rows: the subscriptions of a set as flat arrays, a row each, with no Python object a subscription.

Ids, expressions and patterns lie in blobs. Equal patterns are stored once, whatever the subscriptions are called.
A row that is removed stays where it is, marked, so that row numbers keep their meaning for matchers made earlier.
"""

from libc.string cimport memcpy
from libcpp.vector cimport vector

import numpy as np

from xsift.errors import SubscriptionError, XPathError, StorageError

from cpython.unicode cimport PyUnicode_DecodeUTF8
from xsift.xpath.compiler cimport OUTCOME_ALWAYS, Compiler, Result


cdef class Rows:
    """The subscriptions that were added, in that order."""

    def add(self, str id, text, bint ordered, Compiler compiler not None):
        """Adds a subscription. Raises SubscriptionError if the id is taken, XPathError if the text cannot be used."""
        cdef bytes key = _utf8(id, "id")
        cdef bytes encoded = text if isinstance(text, bytes) else _utf8(text, "expression")
        cdef int32_t number = self.id_number(key, len(key))
        try:
            self.append(number, encoded, len(encoded), compiler, ordered)
        except XPathError as error:
            error.id = id
            raise

    def add_arrow(self, ids, texts, ordered, Compiler compiler not None, bint collect):
        """Adds the subscriptions of Arrow arrays (large_string, large_string, boolean), without an object a row.

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
        cdef Py_ssize_t i
        errors = []
        for i in range(len(ids)):
            try:
                self.append(self.id_number(id_bytes + id_at[i], id_at[i + 1] - id_at[i]), text_bytes + text_at[i],
                            text_at[i + 1] - text_at[i], compiler, is_ordered[i])
            except (XPathError, SubscriptionError) as error:
                error.id = ids[i].as_py()
                if not collect:
                    raise
                errors.append((error.id, error))
        return errors

    def remove(self, str id):
        """Removes the subscription with this id. Raises SubscriptionError if there is none."""
        cdef int32_t row = self.row_of(id)
        if row < 0:
            raise SubscriptionError("unknown-id", f"there is no subscription {id!r}", id=id)
        self.removed[row] = 1
        self.id_row[self.row_id[row]] = -1
        self.count -= 1

    cdef int32_t id_number(self, const char* data, size_t length) except -1:
        cdef int32_t number = self.ids.add(data, length)
        if number == <int32_t>self.id_row.size():
            self.id_row.push_back(-1)
        elif self.id_row[number] >= 0:
            id = data[:length].decode("utf-8", "replace")
            raise SubscriptionError("duplicate-id", f"there is a subscription {id!r} already", id=id,
                                    hint="remove it first, or choose another id")
        return number

    cdef int append(self, int32_t id_number, const char* text, size_t length, Compiler compiler,
                    bint ordered) except -1:
        cdef const Result* result
        cdef size_t i
        compiler.compile_bytes(text, length, ordered)
        for i in range(compiler.results.size()):
            result = &compiler.results[i]
            self.alternative_pattern.push_back(
                self.patterns.add(&compiler.keys[result.key_begin], result.key_end - result.key_begin))
            self.alternative_output.push_back(result.output)
            self.alternative_selects.push_back(result.selects)
        self.alternative_ends.push_back(self.alternative_pattern.size())
        self.id_row[id_number] = <int32_t>self.row_id.size()
        self.row_id.push_back(id_number)
        self.texts.insert(self.texts.end(), text, text + length)
        self.text_ends.push_back(self.texts.size())
        self.flags.push_back((EXACT if compiler.exact else 0) | (ALWAYS if compiler.outcome == OUTCOME_ALWAYS else 0)
                             | (ORDERED if ordered else 0) | (LISTED if compiler.lists_nodes else 0))
        self.removed.push_back(0)
        self.count += 1
        return 0

    # What others read.

    def __len__(self):
        """The number of rows, removed ones included."""
        return self.row_id.size()

    def row_of(self, str id):
        """The row of an id, or -1."""
        cdef bytes key = id.encode("utf-8", "surrogatepass")
        cdef int32_t number = self.ids.find(key, len(key))
        return self.id_row[number] if number >= 0 else -1

    def id(self, int32_t row):
        """The id of a row."""
        cdef int32_t number = self.row_id[self._checked(row)]
        return self.ids.data_of(number)[:self.ids.length_of(number)].decode()

    def ids_of(self, const int32_t[::1] rows):
        """The ids of rows, as a list."""
        cdef Py_ssize_t i
        cdef int32_t number
        found = [None] * rows.shape[0]
        for i in range(rows.shape[0]):
            number = self.row_id[rows[i]]
            found[i] = PyUnicode_DecodeUTF8(self.ids.data_of(number), self.ids.length_of(number), NULL)
        return found

    def text(self, int32_t row):
        """The expression of a row, as it was given."""
        cdef int64_t begin = self.text_ends[self._checked(row) - 1] if row else 0
        return self.texts.data()[begin:self.text_ends[row]].decode()

    def ordered(self, int32_t row):
        """Whether the subscription was added with ordered=True."""
        return bool(self.flags[self._checked(row)] & ORDERED)

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

    def arrays(self):
        """Copies of the arrays that a matcher is made from, by name."""
        return {
            "flags": _bytes(self.flags), "removed": _bytes(self.removed), "row_id": _ints(self.row_id),
            "alternative_ends": _longs(self.alternative_ends), "alternative_pattern": _ints(self.alternative_pattern),
            "alternative_output": _ints(self.alternative_output),
            "alternative_selects": _bytes(self.alternative_selects),
        }

    def alternatives(self, int32_t row):
        """What a row can match by: (number of the pattern, step that is selected or -1, SELECTS_…)."""
        cdef int64_t i
        return [(self.alternative_pattern[i], self.alternative_output[i], self.alternative_selects[i])
                for i in range(self.alternative_ends[row - 1] if self._checked(row) else 0, self.alternative_ends[row])]

    @staticmethod
    def restored(arrays, blobs):
        """Rows as arrays() and blobs() gave them. Raises StorageError if they do not fit together."""
        cdef Rows rows = Rows()
        cdef Py_ssize_t i
        text_bytes, text_ends = blobs["texts"]
        _fill_table(&rows.ids, blobs["ids"][0], blobs["ids"][1])
        _fill_table(&rows.patterns, blobs["patterns"][0], blobs["patterns"][1])
        _fill(<vector[uint8_t]*>&rows.texts, text_bytes)
        _fill_longs(&rows.text_ends, text_ends)
        _fill_ints(&rows.row_id, arrays["row_id"])
        _fill(&rows.flags, arrays["flags"])
        _fill(&rows.removed, arrays["removed"])
        _fill_longs(&rows.alternative_ends, arrays["alternative_ends"])
        _fill_ints(&rows.alternative_pattern, arrays["alternative_pattern"])
        _fill_ints(&rows.alternative_output, arrays["alternative_output"])
        _fill(&rows.alternative_selects, arrays["alternative_selects"])
        _check_restored(arrays, text_bytes, text_ends, rows.ids.size(), rows.patterns.size())
        rows.id_row.assign(rows.ids.size(), -1)
        for i in range(<Py_ssize_t>rows.row_id.size()):
            if not rows.removed[i]:
                rows.id_row[rows.row_id[i]] = <int32_t>i
                rows.count += 1
        return rows

    def removed_rows(self):
        """By row: 1 if it was removed."""
        return _bytes(self.removed)

    def blobs(self):
        """Copies of the byte strings, by name: (bytes, ends) of the ids, the texts and the patterns."""
        return {"ids": _blob(self.ids), "texts": _text_blob(self.texts, self.text_ends), "patterns": _blob(self.patterns)}

    def memory(self):
        """Bytes held, by structure."""
        return {
            "ids": self.ids.bytes() + 4 * (self.id_row.capacity() + self.row_id.capacity()),
            "expressions": self.texts.capacity() + 8 * self.text_ends.capacity(),
            "patterns": self.patterns.bytes(),
            "rows": self.flags.capacity() + self.removed.capacity() + 8 * self.alternative_ends.capacity()
                    + 9 * self.alternative_pattern.capacity(),
        }


cdef bytes _utf8(str text, str what):
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        if what == "expression":
            raise XPathError("bad-encoding", "the expression contains a lone surrogate", column=error.start + 1,
                             hint="it cannot be written in any encoding: remove it") from None
        raise SubscriptionError("bad-id", f"the id {text!r} contains a lone surrogate",
                                hint="it cannot be written in any encoding: remove it") from None


cdef object _bytes(vector[uint8_t]& values):
    return np.frombuffer(bytearray((<const char*>values.data())[:values.size()]), dtype=np.uint8)


cdef object _ints(vector[int32_t]& values):
    return np.frombuffer(bytearray((<const char*>values.data())[:4 * values.size()]), dtype=np.int32)


cdef object _longs(vector[int64_t]& values):
    return np.frombuffer(bytearray((<const char*>values.data())[:8 * values.size()]), dtype=np.int64)


cdef tuple _blob(BytesTable& table):
    ends = np.empty(table.size(), dtype=np.int64)
    cdef int64_t[::1] view = ends
    cdef int64_t i
    for i in range(table.size()):
        view[i] = table.offset_of(i) + table.length_of(i)
    return np.frombuffer(table.data_of(0)[:table.blob_size()] if table.size() else b"", dtype=np.uint8), ends


cdef tuple _text_blob(vector[char]& texts, vector[int64_t]& ends):
    return np.frombuffer(texts.data()[:texts.size()] if texts.size() else b"", dtype=np.uint8), _longs(ends)


cdef int _fill(vector[uint8_t]* target, const uint8_t[::1] values) except -1:
    target.resize(values.shape[0])
    if values.shape[0]:
        memcpy(target.data(), &values[0], values.shape[0])
    return 0


cdef int _fill_ints(vector[int32_t]* target, const int32_t[::1] values) except -1:
    target.resize(values.shape[0])
    if values.shape[0]:
        memcpy(target.data(), &values[0], values.shape[0] * sizeof(int32_t))
    return 0


cdef int _fill_longs(vector[int64_t]* target, const int64_t[::1] values) except -1:
    target.resize(values.shape[0])
    if values.shape[0]:
        memcpy(target.data(), &values[0], values.shape[0] * sizeof(int64_t))
    return 0


cdef int _fill_table(BytesTable* table, const uint8_t[::1] data, const int64_t[::1] ends) except -1:
    cdef const char* at = NULL
    cdef int64_t begin = 0
    cdef Py_ssize_t i
    for i in range(ends.shape[0]):
        if not begin <= ends[i] <= data.shape[0]:
            raise StorageError("damaged-file", "the table of byte strings does not fit its ends")
        if ends[i] > begin:
            at = <const char*>&data[begin]
        if table.add(at, ends[i] - begin) != i:
            raise StorageError("damaged-file", "a byte string is there twice")
        begin = ends[i]
    return 0


def _check_restored(arrays, text_bytes, text_ends, id_count, pattern_count):
    """That no number in the arrays points outside of what it numbers: a damaged file must not be a crash."""
    rows = len(arrays["row_id"])
    alternatives = len(arrays["alternative_pattern"])
    fits = (
        all(len(arrays[name]) == rows for name in ("flags", "removed", "alternative_ends")) and len(text_ends) == rows
        and all(len(arrays[name]) == alternatives for name in ("alternative_output", "alternative_selects"))
        and _within(arrays["row_id"], 0, id_count) and _within(arrays["alternative_pattern"], 0, pattern_count)
        and _ascending(text_ends, len(text_bytes)) and _ascending(arrays["alternative_ends"], alternatives)
    )
    if not fits:
        raise StorageError("damaged-file", "the arrays do not fit together")


def _within(values, least, end):
    return len(values) == 0 or (values.min() >= least and values.max() < end)


def _ascending(ends, last):
    return len(ends) == 0 or (ends[0] >= 0 and bool((np.diff(ends) >= 0).all()) and ends[-1] == last)
