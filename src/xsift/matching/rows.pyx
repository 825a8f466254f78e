"""Rows: the subscriptions of a set as flat arrays, a row each, with no Python object a subscription.

Ids, expressions and patterns lie in blobs. Equal patterns are stored once, whatever the subscriptions are called.
A row that is removed stays where it is, marked, so that row numbers keep their meaning for matchers made earlier.
"""

from cpython.unicode cimport PyUnicode_DecodeUTF8

import numpy as np

from xsift.errors import SubscriptionError, XPathError

from xsift.native.saving cimport from_numpy, table_from_numpy, table_to_numpy, to_numpy
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
        self.removed.edit(row)[0] = 1
        self.id_row.edit(self.row_id[row])[0] = -1
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
        self.id_row.edit(id_number)[0] = <int32_t>self.row_id.size()
        self.row_id.push_back(id_number)
        self.texts.append(text, length)
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

    def flags_of_rows(self):
        """By row: RowFlag bits."""
        return to_numpy(self.flags.saved())

    def removed_rows(self):
        """By row: 1 if it was removed."""
        return to_numpy(self.removed.saved())

    def distinct_ids(self):
        """All ids ever used, as bytes and where each ends; and by row, which of them it has."""
        return (to_numpy(self.ids.blob.saved()), to_numpy(self.ids.ends.saved()).view(np.int64),
                to_numpy(self.row_id.saved()).view(np.int32))

    def alternatives(self, int32_t row):
        """What a row can match by: (number of the pattern, step that is selected or -1, SELECTS_…)."""
        cdef int64_t i
        return [(self.alternative_pattern[i], self.alternative_output[i], self.alternative_selects[i])
                for i in range(self.alternative_ends[row - 1] if self._checked(row) else 0, self.alternative_ends[row])]

    def saved(self, removed):
        """The rows as arrays, for `restore`; with `removed`, by row, instead of what is removed now."""
        return {
            **table_to_numpy("rows.ids", self.ids),
            **table_to_numpy("rows.patterns", self.patterns),
            "rows.id_row": to_numpy(self.id_row.saved()),
            "rows.row_id": to_numpy(self.row_id.saved()),
            "rows.texts": to_numpy(self.texts.saved()),
            "rows.text_ends": to_numpy(self.text_ends.saved()),
            "rows.flags": to_numpy(self.flags.saved()),
            "rows.removed": removed,
            "rows.alternative_ends": to_numpy(self.alternative_ends.saved()),
            "rows.alternative_pattern": to_numpy(self.alternative_pattern.saved()),
            "rows.alternative_output": to_numpy(self.alternative_output.saved()),
            "rows.alternative_selects": to_numpy(self.alternative_selects.saved()),
        }

    def restore(self, arrays):
        """Becomes the rows that were saved; their arrays are used where they lie, and copied when they are changed."""
        table_from_numpy("rows.ids", self.ids, arrays)
        table_from_numpy("rows.patterns", self.patterns, arrays)
        self.id_row.restore(from_numpy(arrays["rows.id_row"]))
        self.row_id.restore(from_numpy(arrays["rows.row_id"]))
        self.texts.restore(from_numpy(arrays["rows.texts"]))
        self.text_ends.restore(from_numpy(arrays["rows.text_ends"]))
        self.flags.restore(from_numpy(arrays["rows.flags"]))
        self.removed.restore(from_numpy(arrays["rows.removed"]))
        self.alternative_ends.restore(from_numpy(arrays["rows.alternative_ends"]))
        self.alternative_pattern.restore(from_numpy(arrays["rows.alternative_pattern"]))
        self.alternative_output.restore(from_numpy(arrays["rows.alternative_output"]))
        self.alternative_selects.restore(from_numpy(arrays["rows.alternative_selects"]))
        cdef int32_t row
        self.kept = arrays
        self.count = 0
        for row in range(<int32_t>self.row_id.size()):
            self.count += 1 - self.removed[row]
            if self.removed[row] and self.id_row[self.row_id[row]] == row:
                self.id_row.edit(self.row_id[row])[0] = -1

    def memory(self):
        """Bytes held, by structure."""
        return {
            "ids": self.ids.bytes() + self.id_row.bytes() + self.row_id.bytes(),
            "expressions": self.texts.bytes() + self.text_ends.bytes(),
            "patterns": self.patterns.bytes(),
            "rows": self.flags.bytes() + self.removed.bytes() + self.alternative_ends.bytes()
                    + self.alternative_pattern.bytes() + self.alternative_output.bytes() + self.alternative_selects.bytes(),
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
