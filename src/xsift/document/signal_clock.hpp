// When to look for signals. Python runs the handlers of signals (Ctrl-C) in its main thread, between two of its own instructions; a
// kernel that works without the GIL for seconds would keep them waiting. So readers look every few milliseconds.
//
// Only in the main thread, for other threads have nothing to look for, and taking the GIL may mean to wait for it.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>

#include <pthread.h>

namespace xsift {

inline std::atomic<unsigned long> main_thread{0};

inline void note_main_thread(unsigned long ident) { main_thread.store(ident, std::memory_order_relaxed); }

// Whether some milliseconds passed in the main thread since this last was true.
inline bool signals_are_due() {
    static constexpr int64_t INTERVAL_NS = 5'000'000;
    static int64_t last = 0;  // of the main thread alone
    if ((unsigned long)(pthread_self()) != main_thread.load(std::memory_order_relaxed)) return false;
    const int64_t now = std::chrono::steady_clock::now().time_since_epoch().count();
    if (now - last < INTERVAL_NS) return false;
    last = now;
    return true;
}

}  // namespace xsift
