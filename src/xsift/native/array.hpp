// Array: like std::vector, or a view of memory that belongs to somebody else.
//
// An index that was saved is used where it lies in a mapped file, so that it loads at once and processes share its pages. Reading is
// the same in both cases. The first change of a view copies it: from then on the array owns its elements.
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace xsift {

// Memory as it is saved. Only the array knows what type its elements have.
struct Bytes {
    const void* data;
    size_t size;
    std::shared_ptr<void> owner = nullptr;  // if it was made to be saved
};

// An array that grows to many megabytes does so by realloc(), which moves pages where a vector would copy them, and is told
// to have large pages: most of what a vector that doubles costs is fresh pages that the system has to clear, one by one.
constexpr size_t LARGE_PAGES_FROM = size_t(4) << 20;

inline void* grown_memory(void* memory, size_t bytes) {
    void* const grown = std::realloc(memory, bytes);
    if (!grown) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
    if (bytes >= LARGE_PAGES_FROM) {
        constexpr uintptr_t PAGE = 4096;
        const uintptr_t begin = (reinterpret_cast<uintptr_t>(grown) + PAGE - 1) & ~(PAGE - 1);
        madvise(reinterpret_cast<void*>(begin), (bytes - PAGE) & ~(PAGE - 1), MADV_HUGEPAGE);  // a wish: it may fail
    }
#endif
    return grown;
}

template <class T>
class Array {
    static_assert(std::is_trivially_copyable<T>::value, "elements are saved and mapped as they are");
    static_assert(alignof(T) <= alignof(std::max_align_t), "as realloc() aligns");
    T* owned = nullptr;        // has room for `room` elements; NULL while there is none
    size_t room = 0;
    const T* first = nullptr;  // `owned`, or what is viewed
    size_t count = 0;

    bool viewing() const { return first != owned; }
    void make_room(size_t size) {
        owned = static_cast<T*>(grown_memory(owned, size * sizeof(T)));
        room = size;
        first = owned;
    }
    void own() {
        if (!viewing()) return;
        const T* const viewed = first;
        if (count > room) make_room(count);
        else first = owned;
        if (count) std::memcpy(static_cast<void*>(owned), viewed, count * sizeof(T));
    }
    // Room for so many, and for as many again if it has to grow.
    void grow_to(size_t size) {
        own();
        if (size > room) make_room(size > 2 * room ? size : 2 * room);
    }

   public:
    Array() = default;
    ~Array() { std::free(owned); }
    Array(const Array& other) { append(other.first, other.count); }
    Array& operator=(const Array& other) {
        if (this != &other) {
            clear();
            append(other.first, other.count);
        }
        return *this;
    }
    Array(Array&& other) noexcept { swap(other); }
    Array& operator=(Array&& other) noexcept {
        if (this != &other) {
            release();
            swap(other);
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
    size_t bytes() const { return room * sizeof(T); }

    // The element, to be changed. Invalid after the array has grown.
    T* edit(size_t i) {
        own();
        return owned + i;
    }
    void push_back(const T& value) {
        const T kept = value;  // it may be an element of this array, which moves
        grow_to(count + 1);
        owned[count++] = kept;
    }
    void pop_back() {
        own();
        --count;
    }
    void append(const T* values, size_t number) {
        grow_to(count + number);
        if (number) std::memcpy(static_cast<void*>(owned + count), values, number * sizeof(T));
        count += number;
    }
    void resize(size_t size, const T& value = T()) {
        const T kept = value;
        grow_to(size);
        for (; count < size; ++count) owned[count] = kept;
        count = size;
    }
    void assign(size_t size, const T& value) {
        const T kept = value;
        clear();
        resize(size, kept);
    }
    void reserve(size_t size) {
        own();
        if (size > room) make_room(size);
    }
    void clear() {
        first = owned;
        count = 0;
    }
    void release() {  // clear, and give the memory back
        std::free(owned);
        owned = nullptr;
        room = 0;
        clear();
    }
    void swap(Array& other) {
        std::swap(owned, other.owned);
        std::swap(room, other.room);
        std::swap(first, other.first);
        std::swap(count, other.count);
    }
    Bytes saved() const { return Bytes{first, count * sizeof(T), nullptr}; }
    // Uses saved elements where they lie; whoever owns them keeps them as long as this array lives.
    void restore(Bytes saved) {
        if (saved.size % sizeof(T)) throw std::invalid_argument("a saved array is no whole number of elements");
        release();
        first = static_cast<const T*>(saved.data);
        count = saved.size / sizeof(T);
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
