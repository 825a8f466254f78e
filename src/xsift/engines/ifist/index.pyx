"""IFiSTIndex: the profiles of iFiST as an index. engine.pyx says what it is for, and runs documents through it.

The segment table has a row for each distinct segment, with its candidate list; a profile is a terse sequence, the
rows of its segments in order; the sequence index leads from the first label of a segment to its row. Profiles come
and go: a row lives as long as a profile uses it. With sharing off (FiST), every profile has rows of its own.
"""

from libcpp.algorithm cimport sort
from libcpp.string cimport string
from libcpp.utility cimport move
from libcpp.vector cimport vector

from xsift.engines.ifist.sequences cimport (
    DESCENDANT_END, OWN_END, UNORDERED, SegmentStep, SequenceNode, cut_segments, delete_wildcards, pruefer_sequence,
    segment_key,
)
from xsift.native.tables cimport hash_bytes
from xsift.xpath.pattern cimport Pattern
from xsift.xpath.symbols cimport ANY

from xsift.errors import EngineError

cdef enum:
    ENOUGH = 1000  # places without a profile, before it is worth while to close the gaps

cdef struct Rarity:
    int32_t users
    Place place

cdef bint rarer(const Rarity& one, const Rarity& other) noexcept nogil:
    if one.place.unit != other.place.unit:
        return one.place.unit < other.place.unit
    return one.users < other.users or (one.users == other.users and one.place.position < other.place.position)

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
        cdef ProfileParts parts
        cdef int32_t key = self._new_key()
        cdef int32_t i
        pruefer_sequence(pattern, &sequence)
        delete_wildcards(pattern, &sequence)
        cut_segments(pattern, sequence, &segments, &parts)
        for i in range(<int32_t>segments.size()):
            parts.places[i].segment = self.intern(segments[i])
            self.count_place(parts.places[i], 1)
        for i in range(<int32_t>parts.units.size()):
            parts.units[i].segment = parts.places[parts.units[i].closing].segment
        self.sequence_nodes += sequence.size()
        self.segments_before_sharing += segments.size()
        if not parts.ordered:
            self.order_places(&parts)
        self.append_parts(key, &parts)
        self.fill_units(key)
        for i in self._first_places(key):
            self.table[self.places[i].segment].candidates.push_back(Candidate(key, <uint32_t>i))
        self.profile_count += 1
        self.generation += 1
        self.symbols = pattern.symbols
        return key

    def remove(self, int key):
        self._check(key)
        cdef Profile* profile = &self.profiles[key]
        cdef int32_t i
        for i in self._first_places(key):
            self.drop_candidate(key, i)
        for i in range(profile.first_unit, profile.first_unit + profile.unit_count):
            self.free_branch_row(self.units[i].progress_row)
            self.free_branch_row(self.units[i].record_row)
            self.free_branch_row(self.units[i].pending_row)
        for i in range(profile.first_place, profile.first_place + profile.place_count):
            self.sequence_nodes -= self._visible_steps(self.places[i].segment)
            self.count_place(self.places[i], -1)
            self.release(self.places[i].segment)
        self.segments_before_sharing -= profile.place_count
        self.places_gone += profile.place_count
        profile.used = False
        self.free_profiles.push_back(key)
        self.profile_count -= 1
        self.generation += 1
        if self.places_gone > ENOUGH and self.places_gone * 2 > <int32_t>self.places.size():
            self.close_gaps()

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

    def _first_places(self, int32_t key):
        """The places that are in the candidate lists when a document begins.

        Ordered: those without a guard. Unordered: the first for which each unit waits.
        """
        cdef int32_t first = self.profiles[key].first_place
        cdef int32_t i
        return [i for i in range(first, first + self.profiles[key].place_count)
                if self.places[i].guard == -1 or (self.places[i].guard == UNORDERED and self.places[i].begin == 0)]

    # The arrays of all profiles.

    cdef int order_places(self, ProfileParts* parts) except -1:
        """Puts the places of an unordered profile in the order in which its units wait for them.

        Unit by unit, those first that the fewest profiles use: a document is least likely to have them.
        """
        cdef vector[Rarity] members
        cdef int32_t i, first, end
        for i in range(<int32_t>parts.places.size()):
            members.push_back(Rarity(self.table[parts.places[i].segment].users, parts.places[i]))
        sort(members.begin(), members.end(), &rarer)
        end = 0
        while end < <int32_t>members.size():
            first = end
            while end < <int32_t>members.size() and members[end].place.unit == members[first].place.unit:
                end += 1
            for i in range(first, end):
                parts.places[i] = members[i].place
                parts.places[i].begin = first - i
                parts.places[i].end = end - i
        return 0

    cdef int append_parts(self, int32_t key, ProfileParts* parts) except -1:
        cdef int32_t first_unit = <int32_t>self.units.size()
        cdef int32_t number = <int32_t>parts.places.size()
        cdef int32_t i
        cdef Place place
        cdef Unit unit
        self.profiles[key] = Profile(<int32_t>self.places.size(), number, first_unit, <int32_t>parts.units.size(),
                                     <int32_t>self.child_rows.size(), 0, parts.ordered, True)
        for i in range(number):
            place = parts.places[i]
            if place.unit >= 0:
                place.unit += first_unit
            if parts.ordered:
                place.end = number - i
            self.places.push_back(place)
        for unit in parts.units:
            unit.profile = key
            if unit.parent >= 0:
                unit.parent += first_unit
            self.units.push_back(unit)
        return 0

    cdef int close_gaps(self) except -1:
        """Drops the parts of profiles that were removed from the arrays; whatever refers to a part follows it."""
        cdef vector[Place] places
        cdef vector[Unit] units
        cdef vector[int32_t] child_rows
        cdef vector[Profile] before = self.profiles
        cdef Profile* profile
        cdef Candidate* candidate
        cdef Place place
        cdef Unit unit
        cdef int32_t key, i, shift
        cdef size_t j
        for key in range(<int32_t>self.profiles.size()):
            profile = &self.profiles[key]
            if not profile.used:
                continue
            profile.first_place = <int32_t>places.size()
            profile.first_unit = <int32_t>units.size()
            profile.first_child_row = <int32_t>child_rows.size()
            shift = profile.first_unit - before[key].first_unit
            for i in range(profile.place_count):
                place = self.places[before[key].first_place + i]
                place.unit += shift if place.unit >= 0 else 0
                places.push_back(place)
            for i in range(profile.unit_count):
                unit = self.units[before[key].first_unit + i]
                unit.parent += shift if unit.parent >= 0 else 0
                unit.loose += profile.first_child_row - before[key].first_child_row
                unit.loose_end += profile.first_child_row - before[key].first_child_row
                units.push_back(unit)
            for i in range(profile.child_row_count):
                child_rows.push_back(self.child_rows[before[key].first_child_row + i])
        for i in range(<int32_t>self.table.size()):
            for j in range(self.table[i].candidates.size()):
                candidate = &self.table[i].candidates[j]
                key = candidate.profile
                candidate.place += self.profiles[key].first_place - before[key].first_place
        for j in range(self.owners.size()):
            if self.owners[j].unit >= 0:
                key = self.owners[j].owner
                self.owners[j].unit += self.profiles[key].first_unit - before[key].first_unit
        self.places.swap(places)
        self.units.swap(units)
        self.child_rows.swap(child_rows)
        self.places_gone = 0
        return 0

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
        self.heads.resize(self.table.size())
        self.heads[row] = SegmentHead(self.join_bucket(segment), 0)
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
        self.leave_bucket(self.heads[row].bucket)
        self.free_branch_row(self.table[row].record_row)
        self.free_branch_row(self.table[row].pending_row)
        self.table[row] = move(vector[TableRow](1)[0])
        self.table[row].next = self.free_row
        self.free_row = row
        return 0

    cdef int count_place(self, const Place& place, int32_t sign) except -1:
        cdef TableRow* row = &self.table[place.segment]
        row.users += sign
        if place.order >= 0:
            row.ordered_users += sign
        elif place.unit >= 0:
            row.loose_users += sign
        if place.order >= 0 and row.segment.child > 0 and row.pending_row < 0:
            row.pending_row = self.new_row(PENDING_SEGMENT, place.segment, -1)
        if place.guard < 0:  # UNORDERED, too
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
        cdef SegmentHead* head = &self.heads[segment]
        cdef Bucket* bucket = &self.buckets[head.bucket]
        cdef size_t i = 0
        head.first_users += sign
        if sign > 0 and head.first_users == 1:
            add_look(self.table[segment].segment, segment, <BucketKind>(bucket.key & 3), &bucket.looks)
        elif sign < 0 and head.first_users == 0:
            while bucket.looks[i].what != segment:
                i += bucket.looks[i].how + 1
            bucket.looks.erase(bucket.looks.begin() + i, bucket.looks.begin() + i + bucket.looks[i].how + 1)
        return 0

    cdef int drop_candidate(self, int32_t key, int32_t place) except -1:
        cdef vector[Candidate]* candidates = &self.table[self.places[place].segment].candidates
        cdef size_t i = 0
        while candidates.at(i).profile != key or candidates.at(i).place != <uint32_t>place:
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
        cdef int32_t end = profile.first_unit + profile.unit_count
        cdef Unit* unit
        cdef int32_t number, i
        for number in range(profile.first_unit, end):
            unit = &self.units[number]
            if unit.parent >= 0:
                unit.record_row = self.new_row(RECORD, key, number)
            if unit.order >= 0:
                unit.pending_row = self.new_row(PENDING_UNIT, key, number)
        for number in range(profile.first_unit, end):
            unit = &self.units[number]
            unit.loose = <int32_t>self.child_rows.size()
            for i in range(profile.first_place, profile.first_place + profile.place_count):
                if self.places[i].unit == number and self.places[i].order <= 0:
                    self._note_child(number, self.places[i].order, self.table[self.places[i].segment].record_row)
            for i in range(profile.first_unit, end):
                if self.units[i].parent == number and self.units[i].order <= 0:
                    self._note_child(number, self.units[i].order, self.units[i].record_row)
            unit.loose_end = <int32_t>self.child_rows.size()
            if unit.ordered > 2 or (unit.ordered and unit.loose < unit.loose_end):
                unit.progress_row = self.new_row(PROGRESS, key, number)
        profile.child_row_count = <int32_t>self.child_rows.size() - profile.first_child_row
        return 0

    def _note_child(self, int32_t unit, int32_t order, int32_t row):
        if order < 0:
            self.child_rows.push_back(row)
        else:
            self.units[unit].first_row = row

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
        cdef int64_t table = (self.table.capacity() * sizeof(TableRow) + self.segment_of.bytes()
                              + self.heads.capacity() * sizeof(SegmentHead))
        cdef int64_t lists = 0
        cdef int64_t index = (self.buckets.capacity() * sizeof(Bucket) + self.bucket_of.bytes()
                              + self.labels.capacity() * sizeof(LabelUse))
        cdef int64_t profiles = (
            self.profiles.capacity() * sizeof(Profile) + self.places.capacity() * sizeof(Place)
            + self.units.capacity() * sizeof(Unit) + 4 * (self.child_rows.capacity() + self.free_profiles.capacity()))
        cdef size_t i
        for i in range(self.table.size()):
            table += self.table[i].segment.steps.capacity() * sizeof(SegmentStep)
            lists += self.table[i].candidates.capacity() * sizeof(Candidate)
        for i in range(self.buckets.size()):
            index += self.buckets[i].looks.capacity() * sizeof(Look)
        for i in range(self.labels.size()):
            index += self.labels[i].ancestors.capacity() * 4
        return {"segment table": table, "candidate lists": lists, "sequence index": index,
                "terse sequences": profiles,
                "BranchID rows": self.owners.capacity() * sizeof(RowOwner) + 4 * self.free_owners.capacity()}
