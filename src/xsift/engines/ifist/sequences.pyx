"""Profiles into sequences: the extended labelled Prüfer sequence of a pattern, and its shareable segments.

Prüfer's method takes a tree apart leaf by leaf, in post-order, and writes down the parent of each node that it
removes. If every leaf is first given a dummy child, each node is written once for each of its children, and a leaf
once: the *extended* sequence. `/A[B//D]//E[G]/F` becomes D B A G E F E A. Read from left to right it is a walk from
each leaf up to where its branch joins the tree, which is just what a document read bottom-up can be compared with.

Three stages, each of which the engine shows to whoever asks (`profile_sequence`, `segments`):

1. `pruefer_sequence`: Label, Pos and Sym of each node (Table I, Figure 7).
2. `delete_wildcards`: a `*` that is a leaf or has one child is deleted; the next node keeps how many were deleted,
   and whether a `//` was among their axes: δ = (op, extra) (Figures 17 and 18). Branch wildcards stay. The root stays
   too, if only because there is no next node to keep its δ.
3. `cut_segments`: a segment ends at an internal occurrence of a branch node, or at the root (Definition 2). A
   profile has as many segments as leaves.

What the paper does not need, and exact matching does (engine.pyx says why):

- A branch node is a `Unit`: it has children, each the end of a segment or of another unit's way up.
- In an ordered pattern, a child of a branch node counts from its own end tag on. If that child is a deleted wildcard,
  a *hidden* step keeps its place in the segment; if it is a leaf wildcard, the segment's `trigger` says when to look.
- `guard`: the paper makes segment j + 1 active when segment j has matched. That is sound if what segment j + 1 needs
  cannot have ended by then: if it lies below a later sibling of a child on the `/` axis. An element on the `//` axis
  may lie inside the element of its next sibling, whose own leaves may have ended long ago.
"""

from xsift.xpath.pattern cimport CHILD, DESCENDANT
from xsift.xpath.symbols cimport ANY

from xsift.engines.ifist.view import SequenceNode as NodeView


cdef bint is_branch(Pattern pattern, int32_t node):
    cdef int32_t first = pattern.nodes[node].first_child
    return first >= 0 and pattern.nodes[first].next_sibling >= 0


cdef int32_t ordered_children(Pattern pattern, int32_t node):
    """How many children of the node must come in order: 0 if that says nothing."""
    cdef int32_t number = 0
    cdef int32_t child = pattern.nodes[node].first_child
    if not pattern.ordered:
        return 0
    while child >= 0:
        number += not pattern.nodes[child].is_condition
        child = pattern.nodes[child].next_sibling
    return number if number > 1 else 0


cdef int32_t order_of(Pattern pattern, int32_t child):
    """The child's number among its parent's ordered children; -1 if it is none."""
    cdef int32_t parent = pattern.nodes[child].parent
    cdef int32_t sibling = pattern.nodes[parent].first_child
    cdef int32_t number = 0
    if pattern.nodes[child].is_condition or not ordered_children(pattern, parent):
        return -1
    while sibling != child:
        number += not pattern.nodes[sibling].is_condition
        sibling = pattern.nodes[sibling].next_sibling
    return number


cdef int pruefer_sequence(Pattern pattern, vector[SequenceNode]* sequence) except -1:
    cdef int32_t node = 0
    cdef int32_t below
    cdef uint8_t sym
    sequence.clear()
    while True:
        while pattern.nodes[node].first_child >= 0:
            node = pattern.nodes[node].first_child
        below = -1
        while True:
            # All of the node's children up to `below` are written; this is the occurrence that follows it.
            sym = SYM_BRANCH if is_branch(pattern, node) else 0
            if below >= 0 and pattern.nodes[below].next_sibling >= 0:
                sequence.push_back(SequenceNode(node, below, pattern.nodes[node].symbol, sym, 0, 0))
                node = pattern.nodes[below].next_sibling
                break
            sym |= SYM_CHILD if pattern.nodes[node].axis == CHILD else SYM_DESCENDANT
            if node == 0:
                sym |= SYM_ROOT
            sequence.push_back(SequenceNode(node, below, pattern.nodes[node].symbol, sym, 0, 0))
            if node == 0:
                return 0
            below = node
            node = pattern.nodes[node].parent


cdef int delete_wildcards(Pattern pattern, vector[SequenceNode]* sequence) except -1:
    cdef size_t kept = 0
    cdef size_t i
    cdef int32_t deleted = 0
    cdef bint at_least = False
    cdef bint is_leaf = False
    cdef SequenceNode node
    for i in range(sequence.size()):
        node = sequence.at(i)
        if node.label == ANY and not node.sym & (SYM_BRANCH | SYM_ROOT):
            if deleted == 0:
                is_leaf = node.below < 0
                # The axis of the node before, which leads up to this one, counts as much as the wildcards' own.
                at_least = not is_leaf and sequence.at(kept - 1).sym & SYM_DESCENDANT
            deleted += 1
            at_least = at_least or node.sym & SYM_DESCENDANT
            continue
        if deleted:
            node.extra = deleted + (0 if is_leaf else 1)
            node.at_least = at_least
            deleted = 0
        sequence[0][kept] = node
        kept += 1
    sequence.resize(kept)
    return 0


cdef int32_t depth_of(Pattern pattern, int32_t node):
    cdef int32_t depth = 0
    while node >= 0:
        depth += 1
        node = pattern.nodes[node].parent
    return depth


cdef int append_steps(Pattern pattern, const SequenceNode& below, const SequenceNode& node,
                      Segment* segment) except -1:
    """The step from one node of a segment up to the next, and the hidden step of an ordered child between."""
    cdef SegmentStep step
    cdef int32_t top
    step.symbol = node.label
    step.sym = node.sym
    step.hidden = False
    step.lowest = depth_of(pattern, node.node) if node.label == ANY else 1
    step.distance = node.extra if node.extra else 1
    step.at_least = node.at_least if node.extra else (below.sym & SYM_DESCENDANT) != 0
    if node.extra and ordered_children(pattern, node.node):
        segment.steps.push_back(SegmentStep(ANY, node.extra - 1, 0, 0, True, depth_of(pattern, node.below)))
        top = below.node
        while top != node.below:
            if pattern.nodes[top].axis == DESCENDANT:
                segment.steps.back().at_least = 1
            top = pattern.nodes[top].parent
        step.distance = 1
        step.at_least = pattern.nodes[top].axis == DESCENDANT
    segment.steps.push_back(step)
    return 0


cdef int32_t child_step(const SequenceNode& below, const SequenceNode& node, const Segment& segment):
    """The step just below the last one, if it is a child of it in the pattern (hidden or not)."""
    cdef int32_t last = <int32_t>segment.steps.size() - 1
    return last - 1 if below.node == node.below or segment.steps[last - 1].hidden else -1


cdef Trigger trigger_of(Pattern pattern, const SequenceNode& first):
    if first.extra and first.sym & SYM_BRANCH and ordered_children(pattern, first.node):
        return DESCENDANT_END if pattern.nodes[first.below].axis == DESCENDANT else CHILD_END
    return OWN_END


cdef int cut_segments(Pattern pattern, vector[SequenceNode]& sequence, vector[Segment]* segments,
                      ProfileParts* profile) except -1:
    cdef vector[int32_t] unit_of       # by node
    cdef vector[int32_t] positions     # by node: the last position in its sub-tree
    cdef vector[int32_t] leaves        # by position
    cdef Segment segment
    cdef SequenceNode node
    cdef Place place
    cdef size_t i
    cdef int32_t position = 0
    number_units(pattern, &unit_of, profile)
    positions.assign(pattern.nodes.size(), -1)
    leaves_of(pattern, &leaves)
    for i in range(sequence.size()):
        node = sequence[i]
        if segment.steps.empty():
            segment.branch = segment.child = -1
            segment.trigger = trigger_of(pattern, node)
            place = Place(-1, -1, -1, UNORDERED, position, 0, 1)
            segment.steps.push_back(SegmentStep(node.label, node.extra, node.at_least, node.sym, False,
                                                depth_of(pattern, node.node) if node.label == ANY else 1))
        else:
            append_steps(pattern, sequence[i - 1], node, &segment)
        if node.sym & SYM_BRANCH and segment.branch < 0:
            segment.branch = <int32_t>segment.steps.size() - 1
            if segment.branch > 0:
                segment.child = child_step(sequence[i - 1], node, segment)
            place.unit = unit_of[node.node]
            place.order = order_of(pattern, node.below)
        elif node.sym & SYM_BRANCH:
            reach_unit(profile, unit_of[node.node], position, segment,
                       child_step(sequence[i - 1], node, segment))
        if node.sym & SYM_BRANCH and node.sym & (SYM_CHILD | SYM_DESCENDANT):
            profile.units[unit_of[node.node]].closing = position
            profile.units[unit_of[node.node]].at = <int32_t>segment.steps.size() - 1
            profile.units[unit_of[node.node]].until = -1
        if node.sym == SYM_BRANCH or node.sym & SYM_ROOT:
            end_units(profile, position, segment)
            mark_positions(pattern, leaves[position], position, &positions)
            segments.push_back(segment)
            profile.places.push_back(place)
            segment.steps.clear()
            position += 1
    profile.ordered = False
    for i in range(profile.units.size()):
        if profile.units[i].ordered:
            profile.ordered = True
    if profile.ordered:
        for position in range(<int32_t>leaves.size()):
            profile.places[position].guard = guard_of(pattern, leaves[position], positions)
    return 0


cdef int number_units(Pattern pattern, vector[int32_t]* unit_of, ProfileParts* profile) except -1:
    """A unit for each branch node, parents first."""
    cdef int32_t node, above, child
    cdef Unit unit
    unit_of.assign(pattern.nodes.size(), -1)
    for node in range(<int32_t>pattern.nodes.size()):
        if not is_branch(pattern, node):
            continue
        unit = Unit(-1, -1, -1, ordered_children(pattern, node), -1, -1, -1, -1, -1, 0, 0, -1, -1, -1, -1)
        child = node
        above = pattern.nodes[node].parent
        while above >= 0 and unit_of.at(above) < 0:
            child = above
            above = pattern.nodes[above].parent
        if above >= 0:
            unit.parent = unit_of.at(above)
            unit.order = order_of(pattern, child)
        unit_of[0][node] = <int32_t>profile.units.size()
        profile.units.push_back(unit)
    return 0


cdef int reach_unit(ProfileParts* profile, int32_t unit, int32_t position, const Segment& segment,
                    int32_t child) except -1:
    """The segment has come up to another branch node: the unit below it now knows its way."""
    cdef size_t i
    for i in range(profile.units.size()):
        if profile.units[i].parent == unit and profile.units[i].closing == position:
            profile.units[i].until = <int32_t>segment.steps.size() - 1
            profile.units[i].child = child
    return 0


cdef int end_units(ProfileParts* profile, int32_t position, const Segment& segment) except -1:
    """The segment ends at the root: so does the way of a topmost unit that it closes."""
    cdef size_t i
    for i in range(profile.units.size()):
        if profile.units[i].closing == position and profile.units[i].until < 0:
            profile.units[i].until = <int32_t>segment.steps.size() - 1
    return 0


cdef int leaves_of(Pattern pattern, vector[int32_t]* leaves) except -1:
    cdef int32_t node
    for node in range(<int32_t>pattern.nodes.size()):
        if pattern.nodes[node].first_child < 0:
            leaves.push_back(node)
    return 0


cdef int mark_positions(Pattern pattern, int32_t leaf, int32_t position, vector[int32_t]* positions) except -1:
    cdef int32_t node = leaf
    while node >= 0:
        positions[0][node] = position
        node = pattern.nodes[node].parent
    return 0


cdef int32_t guard_of(Pattern pattern, int32_t leaf, vector[int32_t]& positions) except -2:
    """The position after whose match, at the earliest, the leaf can end in a match of the ordered pattern.

    The nearest earlier sibling on the `/` axis, of the leaf or of a node above it, is a child of the same element,
    and the leaf's side comes later in post-order: so all of it lies after the end of that sibling.
    """
    cdef int32_t node = leaf
    cdef int32_t sibling, hard
    if pattern.nodes[leaf].is_condition:
        node = pattern.nodes[leaf].parent
    while pattern.nodes[node].parent >= 0:
        hard = -1
        sibling = pattern.nodes[pattern.nodes[node].parent].first_child
        while sibling != node:
            if pattern.nodes[sibling].axis == CHILD and not pattern.nodes[sibling].is_condition:
                hard = sibling
            sibling = pattern.nodes[sibling].next_sibling
        if hard >= 0:
            return positions[hard]
        node = pattern.nodes[node].parent
    return -1


cdef string segment_key(const Segment& segment):
    cdef string key
    cdef size_t i
    cdef SegmentStep step
    cdef char flags = segment.trigger
    key.append(&flags, 1)
    for i in range(segment.steps.size()):
        step = segment.steps[i]
        flags = step.sym | (step.at_least << 4) | (step.hidden << 5)
        key.append(<const char*>&step.symbol, sizeof(symbol_t))
        key.append(<const char*>&step.distance, sizeof(int32_t))
        key.append(<const char*>&step.lowest, sizeof(int32_t))
        key.append(&flags, 1)
    return key


# For whoever wants to see it.

cdef frozenset sym_text(uint8_t sym):
    texts = ((SYM_CHILD, "/"), (SYM_DESCENDANT, "//"), (SYM_BRANCH, "$"), (SYM_ROOT, "#"))
    return frozenset(text for bit, text in texts if sym & bit)


cdef tuple delta_text(bint at_least, int extra):
    return ("≥" if at_least else "=", extra) if extra else None


def profile_sequence(Pattern pattern not None, *, bint wildcards=False):
    """The profile sequence of a pattern; with `wildcards`, before they are deleted (Figures 17 and 18b)."""
    cdef vector[SequenceNode] sequence
    cdef size_t i
    pruefer_sequence(pattern, &sequence)
    if not wildcards:
        delete_wildcards(pattern, &sequence)
    return [NodeView(pattern.symbols.text(sequence[i].label), i + 1, sym_text(sequence[i].sym),
                     delta_text(sequence[i].at_least, sequence[i].extra)) for i in range(sequence.size())]


cdef list sequence_nodes(const Segment& segment, int position, symbols):
    found = []
    cdef SegmentStep step
    cdef bint at_least
    cdef int32_t extra
    cdef size_t i
    for i in range(segment.steps.size()):
        step = segment.steps[i]
        at_least = step.at_least
        extra = step.distance if i == 0 or step.distance > 1 else 0
        if i and segment.steps[i - 1].hidden:
            at_least = at_least or segment.steps[i - 1].at_least
            extra = step.distance + segment.steps[i - 1].distance
        if not step.hidden:
            found.append(NodeView(symbols.text(step.symbol), position + len(found), sym_text(step.sym),
                                  delta_text(at_least, extra)))
    return found
