// How many documents this process has read in which way.
#pragma once
#include <atomic>
#include <cstdint>

#include "scanner.hpp"

namespace xsift {

struct ReadingCounts {
    std::atomic<int64_t> scanned_documents{0}, scanned_bytes{0}, expat_bytes{0};
    std::atomic<int64_t> expat_documents[REASON_COUNT] = {};  // by the reason why they were not scanned

    static void add(std::atomic<int64_t>& count, int64_t number) { count.fetch_add(number, std::memory_order_relaxed); }
    void scanned(int64_t bytes) {
        add(scanned_documents, 1);
        add(scanned_bytes, bytes);
    }
    void given_to_expat(int32_t reason) { add(expat_documents[reason], 1); }
    void read_by_expat(int64_t bytes) { add(expat_bytes, bytes); }
};
inline ReadingCounts reading_counts;

}  // namespace xsift
