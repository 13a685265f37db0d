// The native module: its enums and the functions from the other files.

#include "../splits.hpp"
#include "../sums.hpp"
#include "arrays.hpp"

using namespace recometer;

NB_MODULE(_native, m) {  // NOLINT(misc-use-anonymous-namespace): the macro's expansion
    // Test runners, tracebacks and notebooks may keep objects alive until Python exits.
    nb::set_leak_warnings(false);
    m.doc() = "The functions of the kernel; the headers in cpp/ describe them.";

    nb::enum_<NanRule>(m, "NanRule", nb::is_arithmetic(),
                       "What becomes of a candidate whose score is NaN.")
        .value("UNDEFINED", NanRule::kUndefined, "The user's values are undefined.")
        .value("FIRST", NanRule::kFirst, "It stands before all others.")
        .value("LAST", NanRule::kLast, "It stands behind all others.");
    nb::enum_<TieOrder>(m, "TieOrder", nb::is_arithmetic(),
                        "In which order candidates with equal scores stand.")
        .value("ITEM", TieOrder::kItem, "Lower items first.")
        .value("ITEM_DESCENDING", TieOrder::kItemDescending, "Higher items first.")
        .value("RANDOM", TieOrder::kRandom, "In an order drawn from a key of the user.");
    nb::enum_<RowOrder>(m, "RowOrder", nb::is_arithmetic(),
                        "In which order the rows of a user stand.")
        .value("LATEST", RowOrder::kLatest,
               "The latest first; of those at the same time the lowest draw.")
        .value("DRAWN", RowOrder::kDrawn, "The lowest draw first.")
        .value("PAIRS", RowOrder::kPairs, "Rows of the same item together, the latest first.")
        .value("OLD_PAIRS", RowOrder::kOldPairs,
               "Rows of the same item together, the earliest first.");
    nb::enum_<ScoreFlag>(m, "ScoreFlag", nb::is_arithmetic(),
                         "Facts about a user's candidates, as recometer.ranks.UserFlag has them.")
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
        "Instruction sets that this processor has, best first.\n\nHow many users each scores at a "
        "time.");
    bind_ranking(m);
    bind_rows(m);
    bind_background(m);
}
