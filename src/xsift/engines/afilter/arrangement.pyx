"""Arrangement: suffix labels, links and paths are renumbered so that what is visited together lies together.

Traversals wait for memory most of the time. They go down the SFLabel-tree, and the paths that they come to are leaves
of it. Paths are added in any order, though, so labels and paths that a traversal visits one after the other are
scattered over the index. In suffix order (the tree's labels from top to bottom and branch by branch, each with its
links, then its paths) they are neighbours. What is by label or path at run time lies likewise.

An index that grows is arranged again whenever it has grown by a quarter, so that an addition costs a constant on
average.
"""

from libcpp.vector cimport vector

from xsift.engines.afilter.labels cimport NO_ROOM, NONE, Link, SFLabelTree, SuffixNode, SuffixOrigin, single
from xsift.engines.afilter.view cimport AxisView, PathEntry, PatternView, Trigger
from xsift.native.tables cimport pack
from xsift.native.types cimport int32_t, uint8_t

cdef enum:
    FEWEST_LOOSE = 64
    LOOSE_SHARE = 5


cdef class _Order:
    """The new numbers."""

    cdef vector[int32_t] path_at    # by new number
    cdef vector[int32_t] new_path   # by old number
    cdef vector[int32_t] new_label  # by old number

    cdef int32_t take(self, int32_t path) except -1:
        """Gives a path the next number."""
        self.new_path[path] = <int32_t>self.path_at.size()
        self.path_at.push_back(path)
        return self.new_path[path]


cdef int arrange_if_needed(PatternView view) except -1:
    cdef _Order order
    if view.loose < FEWEST_LOOSE or view.loose * LOOSE_SHARE < view.live:
        return 0
    order = _Order()
    order.new_path.assign(view.paths.size(), NONE)
    if view.has_suffixes:
        _arrange_labels(view, order)
    else:
        _arrange_triggers(view.axes, order)
    _arrange_paths(view, order)
    if view.has_assertions:
        _rebuild_assertions(view)
    view.loose = 0
    return 0


cdef int _arrange_triggers(AxisView axes, _Order order) except -1:
    """Without suffix labels, paths are in the order of their triggers."""
    cdef size_t edge, i
    cdef uint8_t axis
    cdef vector[Trigger]* triggers
    for edge in range(axes.child_triggers.size()):
        for axis in range(2):
            triggers = axes.triggers(<int32_t>edge, axis)
            for i in range(triggers.size()):
                triggers[0][i].path = order.take(triggers[0][i].path)
    return 0


cdef int _arrange_labels(PatternView view, _Order order) except -1:
    cdef SFLabelTree tree = view.suffixes
    cdef AxisView axes = view.axes
    cdef vector[SuffixNode] nodes
    cdef vector[SuffixOrigin] origins
    cdef vector[Link] links
    cdef vector[int32_t] pending
    cdef vector[int32_t] below
    cdef SuffixNode node
    cdef size_t symbol, i
    cdef int32_t label, axis
    cdef Link* link
    order.new_label.assign(tree.nodes.size(), NONE)
    for symbol in range(axes.nodes.size()):
        if axes.nodes[symbol].suffix >= 0:
            pending.push_back(axes.nodes[symbol].suffix)
        while pending.size():
            label = pending.back()
            pending.pop_back()
            node = tree.nodes[label]
            order.new_label[label] = <int32_t>nodes.size()
            below.clear()
            for axis in range(2):
                if node.rooted[axis] >= 0:
                    node.rooted[axis] = order.take(node.rooted[axis])
            if node.parent < 0:
                for i in range(axes.edges[symbol].size()):
                    for axis in range(2):
                        _arrange_link(&axes.edges[symbol][i].triggers[axis], order, below)
            else:
                node.parent = order.new_label[node.parent]
                _copy_links(tree, &node, links)
                for i in range(<size_t>node.links):
                    _arrange_link(&links[node.first_link + i], order, below)
            nodes.push_back(node)
            origins.push_back(tree.origins[label])
            while below.size():
                pending.push_back(below.back())
                below.pop_back()
    for symbol in range(axes.nodes.size()):
        if axes.nodes[symbol].suffix >= 0:
            axes.nodes[symbol].suffix = order.new_label[axes.nodes[symbol].suffix]
        for i in range(axes.edges[symbol].size()):
            for axis in range(2):
                link = &axes.edges[symbol][i].triggers[axis]
                if link.target >= 0:
                    link.target = order.new_label[link.target]
    tree.places.clear()
    for label in range(<int32_t>nodes.size()):
        for i in range(<size_t>nodes[label].links):
            link = &links[nodes[label].first_link + i]
            if link.target >= 0:
                link.target = order.new_label[link.target]
            if nodes[label].wide:
                tree.places.put(pack(label, link.slot), <int32_t>i)
    tree.nodes.swap(nodes)
    tree.origins.swap(origins)
    tree.links.swap(links)
    for i in range(tree.free_blocks.size()):  # there stays a list for every size of block that labels still have
        tree.free_blocks[i].clear()
    tree.free_label = NONE
    return 0


cdef int _copy_links(SFLabelTree tree, SuffixNode* node, vector[Link]& links) except -1:
    """Copies a label's links to the end of `links`, with as little room to grow as its blocks allow."""
    cdef int32_t first = <int32_t>links.size()
    cdef int32_t i
    node.room = NO_ROOM
    if node.links:
        node.room = 0
        while 1 << node.room < node.links:
            node.room += 1
        links.resize(first + (1 << node.room))
        for i in range(node.links):
            links[first + i] = tree.links[node.first_link + i]
    node.first_link = first
    return 0


cdef int _arrange_link(Link* link, _Order order, vector[int32_t]& below) except -1:
    """Notes the label that a link leads to; gives the path that it leads to its number."""
    if link.target >= 0:
        below.push_back(link.target)
    elif link.target != NONE:
        link.target = single(order.take(single(link.target)))
    return 0


cdef int _arrange_paths(PatternView view, _Order order) except -1:
    cdef vector[PathEntry] paths
    cdef vector[int32_t] steps
    cdef vector[int32_t] names
    cdef vector[uint8_t] in_twig
    cdef PathEntry entry
    cdef int32_t path, i, first
    for path in order.path_at:
        entry = view.paths[path]
        first = <int32_t>steps.size()
        for i in range(entry.length * (2 if view.has_prefixes else 1)):
            steps.push_back(view.steps[entry.first + i])
        entry.first = first
        if view.has_suffixes:
            entry.place = order.new_label[entry.place]
        view.numbers[view.names[path]] = <int32_t>paths.size()
        paths.push_back(entry)
        names.push_back(view.names[path])
        in_twig.push_back(view.in_twig[path])
    view.paths.swap(paths)
    view.steps.swap(steps)
    view.names.swap(names)
    view.in_twig.swap(in_twig)
    view.free_blocks.clear()
    view.free_paths.clear()
    return 0


cdef int _rebuild_assertions(PatternView view) except -1:
    cdef int32_t path, label, step
    view.assertions.clear()
    for path in range(<int32_t>view.paths.size()):
        label = view.paths[path].place
        step = view.paths[path].length - view.height_of(label)
        while label >= 0:
            view.assertions.put(pack(view.prefix_of(path, step), label), path)
            label = view.suffixes.nodes[label].parent
            step += 1
    return 0
