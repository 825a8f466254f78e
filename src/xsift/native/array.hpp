// Array: like std::vector, or a view of memory that belongs to somebody else.
//
// An index that was saved is used where it lies in a mapped file, so that it loads at once and processes share its pages. Reading is
// the same in both cases. The first change of a view copies it: from then on the array owns its elements.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <vector>

namespace xsift {

// Memory as it is saved. Only the array knows what type its elements have.
struct Bytes {
    const void* data;
    size_t size;
    std::shared_ptr<void> owner = nullptr;  // if it was made to be saved
};

template <class T>
class Array {
    static_assert(std::is_trivially_copyable<T>::value, "elements are saved and mapped as they are");
    std::vector<T> owned;
    const T* first = nullptr;
    size_t count = 0;
    bool viewing = false;

    void own() {
        if (viewing) {
            owned.assign(first, first + count);
            viewing = false;
        }
    }
    void refresh() {
        first = owned.data();
        count = owned.size();
    }

   public:
    Array() = default;
    Array(const Array& other) : owned(other.begin(), other.end()) { refresh(); }
    Array& operator=(const Array& other) {
        if (this != &other) {
            owned.assign(other.begin(), other.end());
            viewing = false;
            refresh();
        }
        return *this;
    }
    Array(Array&& other) noexcept
        : owned(std::move(other.owned)), first(other.first), count(other.count), viewing(other.viewing) {
        if (!viewing) refresh();
        other.clear();
    }
    Array& operator=(Array&& other) noexcept {
        if (this != &other) {
            owned = std::move(other.owned);
            first = other.first;
            count = other.count;
            viewing = other.viewing;
            if (!viewing) refresh();
            other.clear();
        }
        return *this;
    }

    size_t size() const { return count; }
    bool empty() const { return count == 0; }
    const T* data() const { return first; }
    const T* begin() const { return first; }
    const T* end() const { return first + count; }
    const T& operator[](size_t i) const { return first[i]; }
    const T& back() const { return first[count - 1]; }
    // Bytes that this array itself holds; none if it views others'.
    size_t bytes() const { return viewing ? 0 : owned.capacity() * sizeof(T); }

    // The element, to be changed. Invalid after the array has grown.
    T* edit(size_t i) {
        if (viewing) {
            own();
            refresh();
        }
        return &owned[i];
    }
    void push_back(const T& value) {
        own();
        owned.push_back(value);
        refresh();
    }
    void pop_back() {
        own();
        owned.pop_back();
        refresh();
    }
    void append(const T* values, size_t number) {
        own();
        owned.insert(owned.end(), values, values + number);
        refresh();
    }
    void resize(size_t size, const T& value = T()) {
        own();
        owned.resize(size, value);
        refresh();
    }
    void assign(size_t size, const T& value) {
        viewing = false;
        owned.assign(size, value);
        refresh();
    }
    void reserve(size_t size) {
        own();
        owned.reserve(size);
        refresh();
    }
    void clear() {
        viewing = false;
        owned.clear();
        refresh();
    }
    void release() {  // clear, and give the memory back
        viewing = false;
        std::vector<T>().swap(owned);
        refresh();
    }
    void swap(Array& other) {
        owned.swap(other.owned);
        std::swap(first, other.first);
        std::swap(count, other.count);
        std::swap(viewing, other.viewing);
        if (!viewing) refresh();
        if (!other.viewing) other.refresh();
    }
    Bytes saved() const { return Bytes{first, count * sizeof(T), nullptr}; }
    // Uses saved elements where they lie; whoever owns them keeps them as long as this array lives.
    void restore(Bytes saved) {
        if (saved.size % sizeof(T)) throw std::invalid_argument("a saved array is no whole number of elements");
        std::vector<T>().swap(owned);
        first = static_cast<const T*>(saved.data);
        count = saved.size / sizeof(T);
        viewing = true;
    }
};

// Lists: many growing lists in one array, each contiguous. A list that outgrows its place moves to the end.
template <class T>
class Lists {
   public:
    struct Extent {
        int64_t begin;
        int32_t count;
        int32_t capacity;
    };

    Array<Extent> extents;
    Array<T> pool;

    size_t size() const { return extents.size(); }
    int32_t count(size_t list) const { return extents[list].count; }
    const T* data(size_t list) const { return pool.data() + extents[list].begin; }
    // Ask for the memory that says where a list is, and for that of the list itself.
    void prefetch_extent(size_t list) const { __builtin_prefetch(extents.data() + list); }
    void prefetch_data(size_t list) const { __builtin_prefetch(data(list)); }
    size_t bytes() const { return extents.bytes() + pool.bytes(); }

    int32_t add_list() {
        extents.push_back(Extent{0, 0, 0});
        return static_cast<int32_t>(extents.size() - 1);
    }
    // Makes room for that many elements.
    void reserve(size_t list, int32_t capacity) {
        Extent& extent = *extents.edit(list);
        if (extent.capacity >= capacity) return;
        const int64_t begin = static_cast<int64_t>(pool.size());
        pool.resize(begin + capacity);
        for (int32_t i = 0; i < extent.count; ++i) *pool.edit(begin + i) = pool[extent.begin + i];
        extent.begin = begin;
        extent.capacity = capacity;
    }
    void push(size_t list, const T& value) {
        Extent& extent = *extents.edit(list);
        if (extent.count == extent.capacity) reserve(list, extent.capacity ? 2 * extent.capacity : 1);
        *pool.edit(extent.begin + extent.count++) = value;
    }
    // Becomes the lists that were saved. Throws if a list would lie outside of the pool.
    void restore(Bytes saved_extents, Bytes saved_pool) {
        extents.restore(saved_extents);
        pool.restore(saved_pool);
        const int64_t size = static_cast<int64_t>(pool.size());
        for (const Extent& extent : extents)
            if (extent.count < 0 || extent.capacity < extent.count || extent.begin < 0 || extent.begin > size ||
                extent.capacity > size - extent.begin)
                throw std::invalid_argument("a saved list lies outside");
    }
    // Removes one element; the last takes its place.
    void erase(size_t list, int32_t place) {
        Extent& extent = *extents.edit(list);
        --extent.count;
        *pool.edit(extent.begin + place) = pool[extent.begin + extent.count];
    }
};

}  // namespace xsift
