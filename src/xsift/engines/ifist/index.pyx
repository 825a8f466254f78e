"""IFiSTIndex: the profiles of iFiST as an index. ifist.pyx says what it is for, and runs documents through it.

The segment table has a row for each distinct segment, with its candidate list; a profile is a terse sequence, the
rows of its segments in order; the sequence index leads from the first label of a segment to its row. Profiles come
and go: a row lives as long as a profile uses it. With sharing off (FiST), every profile has rows of its own.
"""

from libcpp.algorithm cimport sort
from libcpp.string cimport string
from libcpp.utility cimport move
from libcpp.vector cimport vector

from xsift.engines.ifist.sequences cimport (
    DESCENDANT_END, OWN_END, Place, SegmentStep, SequenceNode, Unit, cut_segments, delete_wildcards, pruefer_sequence,
    segment_key,
)
from xsift.native.tables cimport hash_bytes
from xsift.xpath.pattern cimport Pattern
from xsift.xpath.symbols cimport ANY

from xsift.errors import EngineError

cdef struct Rarity:
    int32_t users
    int32_t position

cdef bint rarer(const Rarity& one, const Rarity& other) noexcept nogil:
    return one.users < other.users or (one.users == other.users and one.position < other.position)

cdef int drop_number(vector[int32_t]* numbers, int32_t number) except -1:
    cdef size_t i = 0
    while numbers.at(i) != number:
        i += 1
    numbers[0][i] = numbers.back()
    numbers.pop_back()
    return 0

cdef uint64_t EMPTY_KEY = ~<uint64_t>0  # which a FlatMap does not take


cdef class IFiSTIndex(Engine):
    """The segment table, the sequence index and the terse sequences."""

    shares = True  # whether equal segments are one row: iFiST; FiST says False

    def __cinit__(self, *args, **options):
        self.free_row = -1
        self.symbols = None
        self.sharing = type(self).shares

    def add(self, Pattern pattern not None):
        cdef vector[SequenceNode] sequence
        cdef vector[Segment] segments
        cdef int32_t key = self._new_key()
        cdef Profile* profile = &self.profiles[key]
        cdef int32_t position
        pruefer_sequence(pattern, &sequence)
        delete_wildcards(pattern, &sequence)
        cut_segments(pattern, sequence, &segments, profile)
        profile.terse.shrink_to_fit()
        profile.units.shrink_to_fit()
        for position in range(<int32_t>segments.size()):
            profile.terse[position].segment = self.intern(segments[position])
            self.count_place(key, position, 1)
        self.sequence_nodes += sequence.size()
        self.segments_before_sharing += segments.size()
        self.fill_units(key)
        self.order_watch(key)
        for position in self._first_positions(key):
            self.add_candidate(key, position)
        profile.used = True
        self.profile_count += 1
        self.generation += 1
        self.symbols = pattern.symbols
        return key

    def remove(self, int key):
        self._check(key)
        cdef Profile* profile = &self.profiles[key]
        cdef int32_t position
        cdef Unit unit
        for position in self._first_positions(key):
            self.drop_candidate(key, position)
        for unit in profile.units:
            self.free_branch_row(unit.progress_row)
            self.free_branch_row(unit.record_row)
            self.free_branch_row(unit.pending_row)
        for position in range(<int32_t>profile.terse.size()):
            self.sequence_nodes -= self._visible_steps(profile.terse[position].segment)
            self.count_place(key, position, -1)
            self.release(profile.terse[position].segment)
        self.segments_before_sharing -= profile.terse.size()
        self.profiles[key] = move(vector[Profile](1)[0])
        self.free_profiles.push_back(key)
        self.profile_count -= 1
        self.generation += 1

    def __len__(self):
        return self.profile_count

    def _new_key(self):
        cdef int32_t key
        if self.free_profiles.size():
            key = self.free_profiles.back()
            self.free_profiles.pop_back()
            return key
        self.profiles.resize(self.profiles.size() + 1)
        return <int32_t>self.profiles.size() - 1

    def _check(self, int key):
        if not 0 <= key < <int>self.profiles.size() or not self.profiles[key].used:
            raise EngineError("unknown-key", f"engine {self.name!r} has no pattern with key {key}")

    def _first_positions(self, int32_t key):
        """The positions that are in the candidate lists when a document begins.

        Ordered: those without a guard. Unordered: the first for which each unit waits.
        """
        cdef Profile* profile = &self.profiles[key]
        cdef int32_t i
        found = []
        cdef int32_t unit = -2
        for i in range(<int32_t>profile.terse.size()):
            if profile.ordered:
                if profile.terse[i].guard < 0:
                    found.append(i)
            elif profile.terse[profile.watch[i]].unit != unit:
                unit = profile.terse[profile.watch[i]].unit
                found.append(profile.watch[i])
        return found

    def _visible_steps(self, int32_t segment):
        return sum(not step.hidden for step in self.table[segment].segment.steps)

    # The segment table.

    cdef int32_t intern(self, const Segment& segment) except -1:
        """The row of a segment, which is made if there is none or if rows are not shared."""
        cdef string key = segment_key(segment)
        cdef uint64_t hash = hash_bytes(key.data(), key.size())
        cdef int32_t row
        cdef size_t i
        if hash == EMPTY_KEY:
            hash = 0
        if self.sharing:
            row = self.segment_of.get(hash, -1)
            while row >= 0:
                if segment_key(self.table[row].segment) == key:
                    return row
                row = self.table[row].next
        row = self.free_row
        if row >= 0:
            self.free_row = self.table[row].next
        else:
            row = <int32_t>self.table.size()
            self.table.resize(row + 1)
        self.table[row].segment = segment
        self.table[row].segment.steps.shrink_to_fit()
        self.table[row].hash = hash
        self.table[row].next = -1
        if self.sharing:
            self.table[row].next = self.segment_of.get(hash, -1)
            self.segment_of.put(hash, row)
        self.table[row].bucket = self.join_bucket(segment)
        self.table[row].pending_row = -1
        self.table[row].record_row = self.new_row(RECORD, row, -1) if segment.branch >= 0 else -1
        for i in range(segment.steps.size()):
            self.symbol_limit = max(self.symbol_limit, segment.steps[i].symbol + 1)
        return row

    cdef int release(self, int32_t row) except -1:
        """Frees a row that no profile uses any more."""
        cdef int32_t at
        if self.table[row].users:
            return 0
        if self.sharing:
            at = self.segment_of.get(self.table[row].hash, -1)
            if at == row and self.table[row].next < 0:
                self.segment_of.erase(self.table[row].hash)
            elif at == row:
                self.segment_of.put(self.table[row].hash, self.table[row].next)
            else:
                while self.table[at].next != row:
                    at = self.table[at].next
                self.table[at].next = self.table[row].next
        self.leave_bucket(self.table[row].bucket)
        self.free_branch_row(self.table[row].record_row)
        self.free_branch_row(self.table[row].pending_row)
        self.table[row] = move(vector[TableRow](1)[0])
        self.table[row].next = self.free_row
        self.free_row = row
        return 0

    cdef int count_place(self, int32_t key, int32_t position, int32_t sign) except -1:
        cdef Place place = self.profiles[key].terse[position]
        cdef TableRow* row = &self.table[place.segment]
        row.users += sign
        if place.order >= 0:
            row.ordered_users += sign
        elif place.unit >= 0:
            row.loose_users += sign
        if place.order >= 0 and row.segment.child > 0 and row.pending_row < 0:
            row.pending_row = self.new_row(PENDING_SEGMENT, place.segment, -1)
        if place.guard < 0:
            self.need_from_start(place.segment, sign)
        return 0

    # The sequence index.

    cdef int32_t join_bucket(self, const Segment& segment) except -1:
        """The bucket to which a segment belongs, with one user more."""
        cdef symbol_t first = segment.steps[0].symbol
        cdef symbol_t second = ANY
        cdef BucketKind kind = WHATEVER
        cdef uint64_t key
        cdef int32_t bucket
        if segment.trigger != OWN_END:
            kind = BELOW_ENDS
            second = segment.trigger
        elif segment.steps.size() > 1 and segment.steps[1].symbol != ANY and segment.steps[1].distance == 1:
            kind = ANCESTOR if segment.steps[1].at_least else PARENT
            second = segment.steps[1].symbol
        key = bucket_key(first, second, kind)
        bucket = self.bucket_of.get(key, -1)
        if bucket < 0:
            if self.free_buckets.size():
                bucket = self.free_buckets.back()
                self.free_buckets.pop_back()
            else:
                bucket = <int32_t>self.buckets.size()
                self.buckets.resize(bucket + 1)
            self.buckets[bucket].key = key
            self.bucket_of.put(key, bucket)
            if <size_t>first >= self.labels.size():
                self.labels.resize(first + 1)
            self.labels[first].users[<int>kind] += 1
            if kind == ANCESTOR:
                self.labels[first].ancestors.push_back(bucket)
            elif kind == BELOW_ENDS:
                self.below_ends += 1
            if segment.trigger == DESCENDANT_END:
                self.descendant_ends.push_back(bucket)
        self.buckets[bucket].users += 1
        return bucket

    cdef int leave_bucket(self, int32_t bucket) except -1:
        cdef uint64_t key = self.buckets[bucket].key
        cdef LabelUse* use = &self.labels[<symbol_t>(key >> 33)]
        self.buckets[bucket].users -= 1
        if self.buckets[bucket].users == 0:
            use.users[key & 3] -= 1
            if key & 3 == ANCESTOR:
                drop_number(&use.ancestors, bucket)
            elif key & 3 == BELOW_ENDS:
                self.below_ends -= 1
                if (key >> 2) & 3 == DESCENDANT_END:
                    drop_number(&self.descendant_ends, bucket)
            self.bucket_of.erase(key)
            self.buckets[bucket] = move(vector[Bucket](1)[0])
            self.free_buckets.push_back(bucket)
        return 0

    cdef int need_from_start(self, int32_t segment, int32_t sign) except -1:
        """Counts one place more or less that needs the segment in the index when a document begins."""
        cdef TableRow* row = &self.table[segment]
        cdef Bucket* bucket = &self.buckets[row.bucket]
        cdef size_t i = 0
        row.first_users += sign
        if sign > 0 and row.first_users == 1:
            add_look(row.segment, segment, <BucketKind>(bucket.key & 3), &bucket.looks)
        elif sign < 0 and row.first_users == 0:
            while bucket.looks[i].what != segment:
                i += bucket.looks[i].how + 1
            bucket.looks.erase(bucket.looks.begin() + i, bucket.looks.begin() + i + bucket.looks[i].how + 1)
        return 0

    cdef int add_candidate(self, int32_t key, int32_t position) except -1:
        self.table[self.profiles[key].terse[position].segment].candidates.push_back(
            Candidate(key, <uint32_t>position))
        return 0

    cdef int drop_candidate(self, int32_t key, int32_t position) except -1:
        cdef vector[Candidate]* candidates = &self.table[self.profiles[key].terse[position].segment].candidates
        cdef size_t i = 0
        while candidates.at(i).profile != key or candidates.at(i).position != <uint32_t>position:
            i += 1
        candidates.erase(candidates.begin() + i)
        return 0

    # Units and their BranchID rows.

    cdef int32_t new_row(self, RowKind kind, int32_t owner, int32_t unit) except -1:
        cdef int32_t row
        if self.free_owners.size():
            row = self.free_owners.back()
            self.free_owners.pop_back()
            self.owners[row] = RowOwner(<uint8_t>kind, owner, unit)
            return row
        self.owners.push_back(RowOwner(<uint8_t>kind, owner, unit))
        return <int32_t>self.owners.size() - 1

    cdef int free_branch_row(self, int32_t row) except -1:
        if row >= 0:
            self.free_owners.push_back(row)
        return 0

    cdef int fill_units(self, int32_t key) except -1:
        """Gives the profile's units the rows that they need, and notes those of their children."""
        cdef Profile* profile = &self.profiles[key]
        cdef Unit* unit
        cdef int32_t number, i
        for number in range(<int32_t>profile.units.size()):
            unit = &profile.units[number]
            if unit.parent >= 0:
                unit.record_row = self.new_row(RECORD, key, number)
            if unit.order >= 0:
                unit.pending_row = self.new_row(PENDING_UNIT, key, number)
        for number in range(<int32_t>profile.units.size()):
            unit = &profile.units[number]
            unit.loose = <int32_t>profile.rows.size()
            for i in range(<int32_t>profile.terse.size()):
                if profile.terse[i].unit == number and profile.terse[i].order <= 0:
                    self._note_child(key, number, profile.terse[i].order,
                                     self.table[profile.terse[i].segment].record_row)
            for i in range(<int32_t>profile.units.size()):
                if profile.units[i].parent == number and profile.units[i].order <= 0:
                    self._note_child(key, number, profile.units[i].order, profile.units[i].record_row)
            if unit.ordered > 2 or (unit.ordered and unit.loose < <int32_t>profile.rows.size()):
                unit.progress_row = self.new_row(PROGRESS, key, number)
        profile.rows.shrink_to_fit()
        return 0

    def _note_child(self, int32_t key, int32_t unit, int32_t order, int32_t row):
        if order < 0:
            self.profiles[key].rows.push_back(row)
        else:
            self.profiles[key].units[unit].first_row = row

    cdef int order_watch(self, int32_t key) except -1:
        """For each unit of an unordered profile: its segments, those first that the fewest profiles use.

        They are the ones that a document is least likely to have.
        """
        cdef Profile* profile = &self.profiles[key]
        cdef vector[Rarity] members
        cdef int32_t unit, i
        cdef Rarity member
        if profile.ordered:
            return 0
        for unit in range(-1, <int32_t>profile.units.size()):
            members.clear()
            for i in range(<int32_t>profile.terse.size()):
                if profile.terse[i].unit == unit:
                    members.push_back(Rarity(self.table[profile.terse[i].segment].users, i))
            sort(members.begin(), members.end(), &rarer)
            for member in members:
                profile.watch.push_back(member.position)
        profile.watch.shrink_to_fit()
        return 0

    # What there is, for whoever asks.

    # Table IV. What FiST keeps is counted by the first two, what iFiST keeps by the third.

    @property
    def sequence_node_count(self):
        """Nodes of all profile sequences."""
        return self.sequence_nodes

    @property
    def segment_count(self):
        """Segments of all profiles, before sharing."""
        return self.segments_before_sharing

    @property
    def segment_table_count(self):
        """Segments in the segment table."""
        cdef size_t i
        cdef int64_t rows = 0
        for i in range(self.table.size()):
            rows += self.table[i].users > 0
        return rows

    def memory(self):
        cdef int64_t table = self.table.capacity() * sizeof(TableRow) + self.segment_of.bytes()
        cdef int64_t lists = 0
        cdef int64_t index = (self.buckets.capacity() * sizeof(Bucket) + self.bucket_of.bytes()
                              + self.labels.capacity() * sizeof(LabelUse))
        cdef int64_t profiles = self.profiles.capacity() * sizeof(Profile) + 4 * self.free_profiles.capacity()
        cdef size_t i
        for i in range(self.table.size()):
            table += self.table[i].segment.steps.capacity() * sizeof(SegmentStep)
            lists += self.table[i].candidates.capacity() * sizeof(Candidate)
        for i in range(self.buckets.size()):
            index += self.buckets[i].looks.capacity() * sizeof(Look)
        for i in range(self.labels.size()):
            index += self.labels[i].ancestors.capacity() * 4
        for i in range(self.profiles.size()):
            profiles += (self.profiles[i].terse.capacity() * sizeof(Place)
                         + self.profiles[i].units.capacity() * sizeof(Unit)
                         + 4 * (self.profiles[i].rows.capacity() + self.profiles[i].watch.capacity()))
        return {"segment table": table, "candidate lists": lists, "sequence index": index,
                "terse sequences": profiles,
                "BranchID rows": self.owners.capacity() * sizeof(RowOwner) + 4 * self.free_owners.capacity()}
