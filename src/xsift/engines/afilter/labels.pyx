"""PRLabel-tree and SFLabel-tree: AFilter's numbers for what paths begin and end with.

Every distinct beginning of a path has a prefix label, every end that several paths share a suffix label. A path has
one prefix label and one suffix label a step, and no two paths share both: the pair is the assertion (path, step).

A suffix that one path alone has gets no label. From the longest suffix that it shares, a link leads to the path
itself, whose own assertions say how to go on. That keeps the tree small: most suffixes of most paths are theirs
alone.
"""

from libc.string cimport memset
from libcpp.vector cimport vector

from xsift.native.tables cimport FlatMap, pack
from xsift.native.types cimport int32_t, int64_t, symbol_t, uint8_t, uint64_t

cdef enum:
    MANY_LINKS = 64  # with more than this, a hash probe for each pointer is cheaper than a look at each link


cdef class PRLabelTree:
    """The trie of prefixes: a number for every distinct beginning of a path."""

    def __cinit__(self):
        self.free_label = NONE

    cdef int32_t extend(self, int32_t prefix, symbol_t symbol, uint8_t axis) except -1:
        """The label of `prefix` and one more step, new or known."""
        cdef uint64_t key = pack(prefix, symbol * 2 + axis)
        cdef int32_t label = self.children.get(key, NONE)
        if label >= 0:
            return label
        label = self.free_label
        if label >= 0:
            self.free_label = self.nodes[label].parent
            self.nodes[label] = PrefixNode(prefix, symbol, 0, axis)
        else:
            label = <int32_t>self.nodes.size()
            self.nodes.push_back(PrefixNode(prefix, symbol, 0, axis))
        self.children.put(key, label)
        if prefix >= 0:
            self.nodes[prefix].uses += 1
        self.used += 1
        return label

    cdef int release(self, int32_t prefix) except -1:
        """Takes one use away; labels without use are free again."""
        cdef PrefixNode* node
        cdef int32_t parent
        while prefix >= 0:
            node = &self.nodes[prefix]
            node.uses -= 1
            if node.uses:
                break
            parent = node.parent
            self.children.erase(pack(parent, node.symbol * 2 + node.axis))
            node.parent = self.free_label
            self.free_label = prefix
            self.used -= 1
            prefix = parent
        return 0

    def memory(self):
        return self.nodes.capacity() * sizeof(PrefixNode) + self.children.bytes()


cdef class SFLabelTree:
    """The trie of suffixes: a number for every end that several paths have, and the paths that have it."""

    def __cinit__(self):
        self.free_label = NONE

    cdef int32_t new_label(self, int32_t parent, symbol_t symbol, int32_t slot) except -1:
        cdef int32_t label = self.free_label
        cdef SuffixNode node
        memset(&node, 0, sizeof(node))
        node.parent = parent
        node.room = NO_ROOM
        node.rooted[0] = NONE
        node.rooted[1] = NONE
        if label >= 0:
            self.free_label = self.nodes[label].parent
            self.nodes[label] = node
            self.origins[label] = SuffixOrigin(symbol, slot)
        else:
            label = <int32_t>self.nodes.size()
            self.nodes.push_back(node)
            self.origins.push_back(SuffixOrigin(symbol, slot))
        self.used += 1
        return label

    cdef int free(self, int32_t label) except -1:
        """Gives back a label that clusters nothing any more."""
        cdef SuffixNode* node = &self.nodes[label]
        if node.room != NO_ROOM:
            self.free_blocks[node.room].push_back(node.first_link)
        node.parent = self.free_label
        self.free_label = label
        self.used -= 1
        return 0

    cdef int32_t find_link(self, int32_t label, int32_t slot) noexcept nogil:
        """The place of a link among those of a label, or NONE."""
        cdef const SuffixNode* node = &self.nodes[label]
        cdef int32_t place
        if node.wide:
            return self.places.get(pack(label, slot), NONE)
        for place in range(node.links):
            if self.links[node.first_link + place].slot == slot:
                return place
        return NONE

    cdef int add_link(self, int32_t label, Link link) except -1:
        cdef SuffixNode* node = &self.nodes[label]
        cdef int32_t place
        if node.room == NO_ROOM or node.links == 1 << node.room:
            self.more_room(label)
        self.links[node.first_link + node.links] = link
        node.links += 1
        if node.wide:
            self.places.put(pack(label, link.slot), node.links - 1)
        elif node.links > MANY_LINKS:
            node.wide = 1
            for place in range(node.links):
                self.places.put(pack(label, self.links[node.first_link + place].slot), place)
        return 0

    cdef int remove_link(self, int32_t label, int32_t slot) except -1:
        cdef SuffixNode* node = &self.nodes[label]
        cdef int32_t place = self.find_link(label, slot)
        cdef Link last = self.links[node.first_link + node.links - 1]
        self.links[node.first_link + place] = last
        node.links -= 1
        if node.wide:
            self.places.put(pack(label, last.slot), place)
            self.places.erase(pack(label, slot))
        return 0

    cdef int more_room(self, int32_t label) except -1:
        """Moves the links of a label to a block of twice the size."""
        cdef SuffixNode* node = &self.nodes[label]
        cdef uint8_t room = 0 if node.room == NO_ROOM else node.room + 1
        cdef int32_t first, place
        if self.free_blocks.size() <= room:
            self.free_blocks.resize(room + 1)
        if self.free_blocks[room].size():
            first = self.free_blocks[room].back()
            self.free_blocks[room].pop_back()
        else:
            first = <int32_t>self.links.size()
            self.links.resize(first + (1 << room))
        for place in range(node.links):
            self.links[first + place] = self.links[node.first_link + place]
        if node.room != NO_ROOM:
            self.free_blocks[node.room].push_back(node.first_link)
        node.first_link = first
        node.room = room
        return 0

    cdef int list_paths(self, int32_t label, uint64_t missing, vector[int32_t]& pending, vector[int32_t]& paths
                        ) except -1 nogil:
        """Puts the paths that a suffix label clusters into `paths`, less those with a label that is `missing`."""
        cdef const SuffixNode* node
        cdef const Link* link
        cdef int32_t i
        paths.clear()
        pending.clear()
        pending.push_back(label)
        while pending.size():
            node = &self.nodes[pending.back()]
            pending.pop_back()
            for i in range(2):
                if node.rooted[i] >= 0:
                    paths.push_back(node.rooted[i])
            for i in range(node.links):
                link = &self.links[node.first_link + i]
                if link.required & missing:
                    continue
                if link.target >= 0:
                    pending.push_back(link.target)
                else:
                    paths.push_back(single(link.target))
        return 0

    def memory(self):
        cdef int64_t size = self.nodes.capacity() * sizeof(SuffixNode) + self.links.capacity() * sizeof(Link) \
            + self.origins.capacity() * sizeof(SuffixOrigin)
        cdef size_t i
        for i in range(self.free_blocks.size()):
            size += self.free_blocks[i].capacity() * 4
        return size + self.places.bytes()
