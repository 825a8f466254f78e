// What an evaluator kept for a document is not there for the next one, also when the number of documents begins again.
#include <cstdint>
#include <string_view>

#include "node_sets.hpp"

using namespace xsift;

class Probe : public NodeSets {
    bool accepts(int32_t, const Context&) override { return false; }
    std::string_view string(int32_t, const Context&) override { return {}; }

   public:
    int check() {
        budget = 1000;
        kept.resize(2);
        kept[1].epoch = epoch;
        remember(3, 5);
        if (!is_known(local(3, 5), 3, 5)) return 1;
        clear_kept();
        if (is_known(local(3, 5), 3, 5) || kept[1].epoch == epoch) return 2;
        epoch = static_cast<decltype(epoch)>(-1);  // the last number
        clear_kept();
        for (int document = 0; document < 3; ++document, clear_kept()) {
            if (is_known(local(3, 5), 3, 5)) return 3;
            if (kept[0].epoch == epoch || kept[1].epoch == epoch) return 4;
        }
        return 0;
    }
};

int main() { return Probe().check(); }
