// Way: whether the next document is to be remembered, or taken as it comes.
//
// What an element costs in a plain run depends on how many states it enters. Where it is met again, remembering costs
// as much as AGAIN, and some less in any case, and for conditions as much as what they start; but what has to be made for
// it, states, configurations and sets of branches, costs more, the more states stand in each. So remembering pays where many states are active and documents
// lead to little that is new. That is kept account of, in units of work: what was made is spent, what is met again is
// gained. Documents are taken plainly when more is spent than would be gained again in so many elements as are worth
// waiting for, and more than a millisecond or so. Then the debt is paid off by a share of the work that is done: so
// whatever documents do, what is made in vain costs no more than that share.
//
// In a plain run nothing is made, but paths are counted that were not met before: for what stands below the same names
// is the same. When these are so few that remembering would pay, it is tried again; with more patience where documents
// come again and again.
#pragma once
#include <algorithm>
#include <cstdint>

namespace xsift::sift {

// What happened in a plain run of a document, or of a part of it.
struct PlainWork {
    int64_t elements = 0;
    int64_t entered = 0;              // states that elements led to, also those that wait for a child to be entered
    int64_t new_paths = 0;
    int64_t known = 0;                // what was accepted by paths that are known
    int64_t joined = 0;               // what the join looked at
    int64_t passed = 0;               // conditions that were looked up

    // In units of work.
    int64_t cost() const { return (entered + joined + passed) / 2 + known / 16 + elements; }
};

// What was made by remembering, since ever.
struct Making {
    int64_t paths = 0;                // configurations
    int64_t things = 0;               // these, states and sets
    int64_t members = 0;              // states of the automaton in the configurations, that lead on or accept
};

class Way {
   public:
    enum : int32_t { AUTO, ALWAYS_REMEMBER, ALWAYS_PLAIN };

   private:
    // Measured (docs/engines.md): a unit is about 35 ns. To make a thing takes 0.7 µs, and for each state in it 17 ns.
    static constexpr int64_t MADE = 20, MOST_MADE = 100, MEMBERS = 2, AGAIN = 8, STEP = 2;
    static constexpr int64_t PATIENCE = 25000, MUCH_PATIENCE = 16 * PATIENCE;  // elements
    static constexpr int64_t LITTLE = 40000;         // units: more than a millisecond
    static constexpr int64_t SHARE = 5;              // of the work of plain runs, one part in so many
    static constexpr int64_t WINDOW = 128;           // documents that are kept in mind,
    static constexpr int64_t FEW = 32;               // and of which it is known if they came again
    static constexpr int64_t DOUBT = 8;              // one in so many that did not is borne

    const int32_t wanted;
    bool plain;
    int64_t spent = 0;
    Making making;
    PlainWork recent;                                // times WINDOW, the older the less
    int64_t remembered_elements = 0, remembered_steps = 0;  // likewise
    int64_t foreseen = 0, made = 0;                  // things, by new paths and in truth: conditions lead to more. Likewise
    int64_t again = 0;                               // those that came again, times FEW, likewise
    bool is_known = false;                           // else nothing was taken plainly yet, and it is a guess

    // What would be gained by remembering it. Deciding what branches lead to is work then, too, and so is what conditions start.
    int64_t gain(const PlainWork& work) const {
        const int64_t gained = std::max(work.cost() / 4, work.cost() - AGAIN * work.elements - work.joined / 4);
        return gained - int64_t(double(work.elements) * double(STEP * remembered_steps) /
                                double(std::max<int64_t>(1, remembered_elements)));
    }
    int64_t gain_by(int64_t elements) const {
        return int64_t(double(gain(recent)) * double(elements) / double(std::max<int64_t>(1, recent.elements)));
    }
    int64_t bearable() const { return std::max(LITTLE, gain_by(is_repeating() ? MUCH_PATIENCE : PATIENCE)); }

    // To find out that documents do not come again takes fewer than to find out that they do: what is made for them is lost.
    void count(bool came_again) { again += came_again ? FEW - again / FEW : -(again / DOUBT); }

    // What it costs to make so many things.
    int64_t cost_of(int64_t things) const {
        return things * std::min(MOST_MADE, MADE + making.members / MEMBERS / std::max<int64_t>(1, making.paths));
    }
    // How much more was made than new paths let expect.
    void learn(int64_t elements, int64_t things) {
        const double paths = double(elements) * double(recent.new_paths) / double(std::max<int64_t>(1, recent.elements));
        foreseen += WINDOW * things_of(int64_t(paths) + 1) - foreseen / WINDOW;
        made += WINDOW * things - made / WINDOW;
    }
    // And what so many new paths lead to.
    int64_t things_of(int64_t paths) const { return paths * making.things / std::max<int64_t>(1, making.paths); }
    int64_t cost_of_paths(int64_t paths) const {
        const double more = double(made) / double(std::max<int64_t>(1, foreseen));
        return int64_t(double(cost_of(things_of(paths))) * std::max(1.0, more));
    }

   public:
    explicit Way(int32_t wanted) : wanted(wanted), plain(wanted == ALWAYS_PLAIN) {}

    bool is_plain() const { return plain; }

    // Whether documents come again and again.
    bool is_repeating() const { return again > FEW * FEW / 2; }

    // The index is another one.
    void begin_again() {
        plain = wanted == ALWAYS_PLAIN;
        spent = 0;
        recent = PlainWork();
        remembered_elements = remembered_steps = foreseen = made = 0;
        again = 0;
        is_known = false;
    }

    // Whether a plain run pays where this happened.
    bool pays(const PlainWork& work) const {
        return wanted == ALWAYS_PLAIN || cost_of_paths(work.new_paths) > gain(work);
    }

    // Whether it matters if the document that is remembered came again: patience hangs on it.
    bool watches() const { return spent > 0 && is_repeating(); }

    // So many elements were remembered, in so many steps, and so much was made by now. If this was watched, the document came
    // again, or did not.
    void was_remembered(int64_t elements, int64_t steps, const Making& made_by_now, bool is_watched, bool came_again) {
        if (is_watched) count(came_again);
        if (wanted != AUTO) return;
        remembered_elements += WINDOW * elements - remembered_elements / WINDOW;
        remembered_steps += WINDOW * steps - remembered_steps / WINDOW;
        const int64_t things = made_by_now.things - making.things;
        making = made_by_now;
        if (is_known) learn(elements, things);
        // By what was made, this is what it would be to take elements plainly, if half of it comes with known paths.
        if (!is_known) recent = PlainWork{making.paths, making.members / 2};
        spent = std::max<int64_t>(0, spent + cost_of(things) - gain_by(elements));
        plain = spent > bearable() || (is_known && pays(recent) && !is_repeating());
    }

    // A document was taken plainly, which may have come more than once before.
    void was_plain(const PlainWork& work, bool came_again) {
        count(came_again);
        if (wanted != AUTO) return;
        if (!is_known) recent = PlainWork();
        is_known = true;
        recent.elements += WINDOW * work.elements - recent.elements / WINDOW;
        recent.entered += WINDOW * work.entered - recent.entered / WINDOW;
        recent.known += WINDOW * work.known - recent.known / WINDOW;
        recent.joined += WINDOW * work.joined - recent.joined / WINDOW;
        recent.passed += WINDOW * work.passed - recent.passed / WINDOW;
        recent.new_paths += WINDOW * work.new_paths - recent.new_paths / WINDOW;
        spent = std::min(spent, bearable());  // what it is worth to wait for may have been guessed too high
        spent -= std::min(spent, work.cost() / SHARE);
        plain = (pays(recent) && !is_repeating()) || gain(recent) < 0 || spent > bearable() * 3 / 4;
    }
};

}  // namespace xsift::sift
