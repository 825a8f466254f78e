// Run: one thread's way through documents.
//
// There are two ways. To remember what documents lead to pays for itself when it is met again (remembering_run.hpp); if
// it is not, to follow the automaton as it is costs less (plain_run.hpp). The answers are the same. Which way a
// document is taken follows from those before it (way.hpp).
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "guide.hpp"
#include "plain_run.hpp"
#include "remembering_run.hpp"
#include "results.hpp"
#include "way.hpp"

namespace xsift::sift {

class Run : public Guide {
    static constexpr int64_t NOTE_BYTES = 64;        // what is taken down in a plain run has so many bytes, or fewer
    static constexpr size_t FEWEST_NOTES = 256;      // a document may have in any case
    static constexpr size_t FIRST_LOOK = 8192;       // notes, after which it is looked if a plain run still pays

    const TwigIndex* index;
    TriggerTable table;
    Results results;
    RememberingRun remembering;
    PlainRun plain;
    Way way;
    int64_t version = -1;              // of the index that all of them are for,
    int64_t plain_version = -1;        // and that the plain run is
    bool is_plain = false;             // how the document at hand is taken
    bool is_watched = false;           // it is remembered, and it matters if it came before
    std::vector<int32_t> taken;        // its events, if it is plain or watched
    struct Counted {
        uint32_t hash;
        uint32_t times;                // that a document came. Two that share a place forget each other.
    };
    static constexpr size_t COUNTED = 4096, MOST_WATCHED = 1 << 16;
    static constexpr uint32_t WATCHED = 8;  // one in so many documents that are remembered, if it does not matter much
    uint32_t unwatched = 0;
    std::vector<Counted> counted;
    const size_t most_notes;           // with more a plain run is given up
    size_t look_at = 0;                // notes, after which it is looked again if that pays
    int64_t codes_taken = 0;
    bool decided = false;              // nothing that follows in the document matters
    bool unfinished = false;           // a document was begun and its matches were not collected: it broke off
    bool is_whole = true;              // else memory ran out in the middle of something, which may be half made

   public:
    int64_t plain_documents = 0;

    Run(const TwigIndex* index, int64_t cache_bytes, int32_t wanted)
        : index(index), table(index), remembering(index, table, results, cache_bytes),
          plain(index, table, results, cache_bytes), way(wanted),
          most_notes(std::max(FEWEST_NOTES, size_t(cache_bytes / NOTE_BYTES))) {}
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

    int64_t states_made() const { return remembering.states_made(); }
    int64_t configurations_made() const { return remembering.configurations_made(); }
    int64_t sets_made() const { return remembering.sets_made(); }
    int64_t looked() const { return remembering.looked() + plain.evaluated(); }
    int64_t decisions() const { return remembering.decisions(); }
    int64_t flushes() const { return remembering.flushes; }
    int64_t entered() const { return plain.entered(); }
    size_t cached_bytes() const { return remembering.cached_bytes(); }
    size_t mark_bytes() const {
        return remembering.mark_bytes() + table.bytes() + results.bytes() + plain.bytes() +
               counted.capacity() * sizeof(Counted);
    }

    void begin(int64_t version_now) {
        if (!is_whole) version = plain_version = -1;  // all is made anew, as for another index
        is_whole = false;
        if (version != version_now) {
            table.assign();
            remembering.assign();
            results.resize(index->pattern_node.size());
            version = version_now;
            way.begin_again();
        }
        if (unfinished) results.take([](const int32_t*, const int32_t*) {});
        unfinished = true;
        decided = false;
        results.begin(index->pattern_count);
        codes_taken = 0;
        is_plain = way.is_plain() && !index->ordered_count;
        taken.clear();
        is_watched = !is_plain && (way.watches() || ++unwatched % WATCHED == 0);
        if (table.begin_document()) {
            remembering.take_triggers();
            if (plain_version == version) plain.take_triggers();
        }
        if (is_plain) begin_plain();
        else begin_remembering();
        is_whole = true;
    }

    // Takes events. Returns whether every pattern is decided.
    bool feed(const int32_t* codes, size_t number) {
        if (decided) return true;
        is_whole = false;
        codes_taken += int64_t(number);
        decided = is_plain ? feed_plain(codes, number) : feed_remembering(codes, number);
        is_whole = true;
        return decided;
    }

    uint64_t take(const int32_t* codes, size_t number) override {
        if (feed(codes, number)) return 0;
        return is_plain ? plain.subjects() : remembering.subjects();
    }

    void begin_again() override { begin(version); }

    // Appends the keys of what matched, ascending, and forgets them.
    void collect(std::vector<int32_t>& keys) {
        is_whole = false;
        if (is_plain) {
            plain.end_document();
            way.was_plain(plain.work, came_again());
        } else {
            way.was_remembered(codes_taken / 2, remembering.steps_taken(), remembering.making(), is_watched, is_watched && came_again());
        }
        results.take([&](const int32_t* begin, const int32_t* end) { keys.insert(keys.end(), begin, end); });
        unfinished = false;
        is_whole = true;
    }

   private:
    // Whether the document at hand came more than once before, by a hash of its events.
    bool came_again() {
        const uint64_t hash = hash_bytes(reinterpret_cast<const char*>(taken.data()), taken.size() * sizeof(int32_t));
        if (counted.empty()) counted.resize(COUNTED, Counted{0, 0});
        Counted& place = counted[hash & (COUNTED - 1)];
        if (place.hash != uint32_t(hash >> 32)) place = Counted{uint32_t(hash >> 32), 0};
        return ++place.times > 2;
    }

    void begin_remembering() {
        is_plain = false;
        remembering.begin(way.is_repeating());
    }

    void begin_plain() {
        ++plain_documents;
        if (plain_version != version) plain.assign();
        plain_version = version;
        look_at = std::min(FIRST_LOOK, most_notes);
        plain.begin(way.is_repeating());
    }

    bool feed_remembering(const int32_t* codes, size_t number) {
        if (is_watched && taken.size() < MOST_WATCHED) taken.insert(taken.end(), codes, codes + number);
        return remembering.feed(codes, number);
    }

    bool feed_plain(const int32_t* codes, size_t number) {
        taken.insert(taken.end(), codes, codes + number);
        const int32_t* const end = codes + number;
        while (codes != end) {
            const int32_t code = *codes++;
            if (code >= 0) {
                plain.start_tag(code);
                if (plain.notes() >= look_at && is_too_long()) return remember_instead();
                if (results.all_matched() || (plain.depth() == 1 && plain.leads_nowhere())) return true;
            } else if (code == -1) {
                plain.end_tag();
            } else {
                const int32_t* const first = codes - 1;
                while (codes != end && *codes < -1) ++codes;
                plain.take_conditions(first, size_t(codes - first));
                if (results.all_matched()) return true;
            }
        }
        return false;
    }

    // Whether a plain run costs too much memory, or does not pay: a long document may be like itself.
    bool is_too_long() {
        look_at = std::min(2 * look_at, most_notes);
        return plain.notes() >= most_notes || !way.pays(plain.work);
    }

    // Takes the document at hand the other way, from its beginning. What matched so far has matched.
    bool remember_instead() {
        begin_remembering();
        return remembering.feed(taken.data(), taken.size());
    }
};

}  // namespace xsift::sift
