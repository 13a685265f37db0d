// The native module: its enums, and the functions that the other files add.

#include "../splits.hpp"
#include "../sums.hpp"
#include "arrays.hpp"

using namespace recometer;

NB_MODULE(_native, m) {  // NOLINT(misc-use-anonymous-namespace): the macro's expansion
    // Test runners, tracebacks and notebooks may keep objects alive until Python exits, and
    // nanobind would report these objects as leaks.
    nb::set_leak_warnings(false);
    m.doc() = "The functions of the kernel. The headers in cpp/ describe them.";

    nb::enum_<NanRule>(m, "NanRule", nb::is_arithmetic(),
                       "How to treat a candidate whose score is NaN.")
        .value("UNDEFINED", NanRule::kUndefined, "The user's values are undefined.")
        .value("FIRST", NanRule::kFirst, "The candidate ranks above all others.")
        .value("LAST", NanRule::kLast, "The candidate ranks below all others.");
    nb::enum_<TieOrder>(m, "TieOrder", nb::is_arithmetic(),
                        "How to order candidates with equal scores.")
        .value("ITEM", TieOrder::kItem, "Lower items first.")
        .value("ITEM_DESCENDING", TieOrder::kItemDescending, "Higher items first.")
        .value("RANDOM", TieOrder::kRandom, "In a random order that depends on the user's key.");
    nb::enum_<RowOrder>(m, "RowOrder", nb::is_arithmetic(), "How to order a user's rows.")
        .value("LATEST", RowOrder::kLatest, "Latest first; at equal times, lowest draw first.")
        .value("DRAWN", RowOrder::kDrawn, "Lowest draw first.")
        .value("PAIRS", RowOrder::kPairs, "Grouped by item, latest first.")
        .value("OLD_PAIRS", RowOrder::kOldPairs, "Grouped by item, earliest first.");
    nb::enum_<ScoreFlag>(m, "ScoreFlag", nb::is_arithmetic(),
                         "Flags for a user's candidates, as in recometer.ranks.UserFlag.")
        .value("NAN_SCORE", kNanScore, "A candidate's score is NaN.")
        .value("INFINITE_SCORE", kInfiniteScore, "A candidate's score is infinite.");

    m.def(
        "instruction_sets",
        [] {
            nb::dict sets;
            for (const InstructionSet* set : instruction_sets()) {
                sets[set->name] = set->users_at_once;
            }
            return sets;
        },
        nb::sig("def instruction_sets() -> dict[str, int]"),
        "Return the instruction sets that this processor supports, best first.\n\nEach value is "
        "the number of users that the instruction set scores at a time.");
    bind_ranking(m);
    bind_rows(m);
    bind_background(m);
}
