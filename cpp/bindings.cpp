// The only file that knows Python: shapes are checked here, the GIL is released around the work.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "arrow.hpp"
#include "hashing.hpp"
#include "lists.hpp"
#include "ranking.hpp"
#include "splits.hpp"
#include "strings.hpp"

namespace nb = nanobind;
using namespace recometer;

namespace {

template <class T>
using In1 = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out1 = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using In2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Strided2 = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;

void require(bool holds, const char* message) {
    if (!holds) throw std::invalid_argument(message);
}

const Kernel<float>& kernel(const InstructionSet& set, float) { return set.single; }
const Kernel<double>& kernel(const InstructionSet& set, double) { return set.twice; }

const InstructionSet& find(const std::string& name) {
    for (const InstructionSet* set : instruction_sets()) {
        if (name == set->name) return *set;
    }
    throw std::invalid_argument("this processor has no instruction set " + name);
}

Ragged ragged(const In1<std::int64_t>& indptr, const In1<std::int32_t>& items,
              std::size_t n_users) {
    require(indptr.shape(0) == n_users + 1, "indptr must have one entry more than users");
    require(static_cast<std::size_t>(indptr.data()[n_users]) <= items.shape(0),
            "indptr points beyond the items");
    return {indptr.data(), items.data()};
}

template <class Real>
ItemFactors<Real> item_factors(const Strided2<Real>& items, const std::optional<In1<Real>>& bias,
                               const std::optional<In1<std::int64_t>>& rows) {
    require(!bias || bias->shape(0) == items.shape(0), "one bias per row of item factors");
    return {items.data(),
            static_cast<std::ptrdiff_t>(items.stride(0)),
            static_cast<std::ptrdiff_t>(items.stride(1)),
            bias ? bias->data() : nullptr,
            rows ? rows->data() : nullptr,
            static_cast<std::int64_t>(rows ? rows->shape(0) : items.shape(0))};
}

// The judged items with the scratch that sorting them needs.
template <class Real>
struct SortedJudged {
    std::vector<std::int64_t> order, order_end;
    Judged<Real> judged;

    SortedJudged(const Ragged& table, std::size_t n_users, const In1<Real>& scores,
                 const Out1<std::int64_t>& above, const Out1<std::int64_t>& tied,
                 const Out1<std::int64_t>& before)
        : order(static_cast<std::size_t>(table.indptr[n_users] - table.indptr[0])),
          order_end(n_users) {
        // Positions are absolute; the scratch holds this block's alone.
        std::int64_t* const from = order.data() - table.indptr[0];
        sort_judged(table, n_users, scores.data(), from, order_end.data());
        judged = {table,        scores.data(), from,         order_end.data(),
                  above.data(), tied.data(),   before.data()};
    }
};

template <class Real>
using Lists2 = nb::ndarray<Real, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class Real>
Top<Real> top(std::size_t n_users, int order, const In1<std::uint64_t>& keys,
              const Lists2<Real>& scores, const Lists2<std::int32_t>& items,
              const Out1<std::int64_t>& n, const Out1<std::int64_t>& left) {
    const std::size_t k = scores.shape(1);
    require(k >= 1, "a list has at least one place");
    require(scores.shape(0) == n_users && items.shape(0) == n_users && items.shape(1) == k &&
                keys.shape(0) == n_users && n.shape(0) == n_users && left.shape(0) == n_users,
            "one list per user");
    return {static_cast<std::int64_t>(k),
            static_cast<Order>(order),
            keys.data(),
            scores.data(),
            items.data(),
            n.data(),
            left.data()};
}

template <class Real>
void bind_top(nb::module_& m) {
    m.def(
        "top_factors",
        [](const std::string& set, In2<Real> users, Strided2<Real> items,
           std::optional<In1<Real>> bias, std::optional<In1<std::int64_t>> rows, std::int64_t first,
           std::int64_t last, In1<std::int64_t> excluded_indptr, In1<std::int32_t> excluded,
           int order, In1<std::uint64_t> keys, Lists2<Real> top_scores,
           Lists2<std::int32_t> top_items, Out1<std::int64_t> n, Out1<std::int64_t> left,
           bool check, int nan_rule, Out1<std::uint32_t> flags) {
            const std::size_t n_users = users.shape(0);
            require(users.shape(1) == items.shape(1), "users and items differ in factors");
            const ItemFactors<Real> factors = item_factors<Real>(items, bias, rows);
            require(0 <= first && first <= last && last <= factors.n_items, "no such items");
            require(flags.shape(0) == n_users, "one flag per user");
            const TopFactors<Real> problem{
                users.data(),
                n_users,
                users.shape(1),
                factors,
                first,
                last,
                ragged(excluded_indptr, excluded, n_users),
                top(n_users, order, keys, top_scores, top_items, n, left),
                check,
                static_cast<NanRule>(nan_rule),
                flags.data()};
            const InstructionSet& chosen = find(set);
            nb::gil_scoped_release release;
            kernel(chosen, Real{}).top_factors(problem);
        },
        nb::arg("instruction_set"), nb::arg("users").noconvert(), nb::arg("items").noconvert(),
        nb::arg("bias").noconvert().none(), nb::arg("rows").noconvert().none(), nb::arg("first"),
        nb::arg("last"), nb::arg("excluded_indptr").noconvert(), nb::arg("excluded").noconvert(),
        nb::arg("order"), nb::arg("keys").noconvert(), nb::arg("top_scores").noconvert(),
        nb::arg("top_items").noconvert(), nb::arg("n").noconvert(), nb::arg("left").noconvert(),
        nb::arg("check"), nb::arg("nan_rule"), nb::arg("flags").noconvert());

    m.def(
        "top_scores",
        [](const std::string& set, Strided2<Real> scores, std::optional<In1<std::int64_t>> columns,
           In1<std::int64_t> excluded_indptr, In1<std::int32_t> excluded, int order,
           In1<std::uint64_t> keys, Lists2<Real> top_scores, Lists2<std::int32_t> top_items,
           Out1<std::int64_t> n, Out1<std::int64_t> left, int nan_rule, Out1<std::uint32_t> flags,
           Out1<std::int64_t> no_candidates) {
            const std::size_t n_users = scores.shape(0);
            require(scores.shape(1) <= 1 || scores.stride(1) == 1,
                    "the scores of a user must be contiguous");
            require(flags.shape(0) == n_users && no_candidates.shape(0) == n_users,
                    "one flag per user");
            const TopScores<Real> problem{
                scores.data(),
                static_cast<std::ptrdiff_t>(scores.stride(0)),
                n_users,
                columns ? columns->data() : nullptr,
                static_cast<std::int64_t>(columns ? columns->shape(0) : scores.shape(1)),
                ragged(excluded_indptr, excluded, n_users),
                top(n_users, order, keys, top_scores, top_items, n, left),
                static_cast<NanRule>(nan_rule),
                flags.data(),
                no_candidates.data()};
            const InstructionSet& chosen = find(set);
            nb::gil_scoped_release release;
            kernel(chosen, Real{}).top_scores(problem);
        },
        nb::arg("instruction_set"), nb::arg("scores").noconvert(),
        nb::arg("columns").noconvert().none(), nb::arg("excluded_indptr").noconvert(),
        nb::arg("excluded").noconvert(), nb::arg("order"), nb::arg("keys").noconvert(),
        nb::arg("top_scores").noconvert(), nb::arg("top_items").noconvert(),
        nb::arg("n").noconvert(), nb::arg("left").noconvert(), nb::arg("nan_rule"),
        nb::arg("flags").noconvert(), nb::arg("no_candidates").noconvert());
}

template <class Real>
void bind(nb::module_& m) {
    m.def(
        "score_items",
        [](const std::string& set, In2<Real> users, Strided2<Real> items,
           std::optional<In1<Real>> bias, std::optional<In1<std::int64_t>> rows,
           In1<std::int64_t> indptr, In1<std::int32_t> listed, Out1<Real> scores) {
            require(users.shape(1) == items.shape(1), "users and items differ in factors");
            require(scores.shape(0) == listed.shape(0), "one score per listed item");
            const ScoreItems<Real> problem{users.data(),
                                           users.shape(0),
                                           users.shape(1),
                                           item_factors<Real>(items, bias, rows),
                                           ragged(indptr, listed, users.shape(0)),
                                           scores.data()};
            const InstructionSet& chosen = find(set);
            nb::gil_scoped_release release;
            kernel(chosen, Real{}).score_items(problem);
        },
        nb::arg("instruction_set"), nb::arg("users").noconvert(), nb::arg("items").noconvert(),
        nb::arg("bias").noconvert().none(), nb::arg("rows").noconvert().none(),
        nb::arg("indptr").noconvert(), nb::arg("listed").noconvert(),
        nb::arg("scores").noconvert());

    m.def(
        "rank_factors",
        [](const std::string& set, In2<Real> users, Strided2<Real> items,
           std::optional<In1<Real>> bias, std::optional<In1<std::int64_t>> rows, std::int64_t first,
           std::int64_t last, In1<std::int64_t> excluded_indptr, In1<std::int32_t> excluded,
           In1<std::int64_t> judged_indptr, In1<std::int32_t> judged_items, In1<Real> judged_scores,
           Out1<std::int64_t> above, Out1<std::int64_t> tied, Out1<std::int64_t> before,
           std::int64_t limit, bool check, int nan_rule, Out1<std::uint32_t> flags) {
            const std::size_t n_users = users.shape(0);
            require(users.shape(1) == items.shape(1), "users and items differ in factors");
            const ItemFactors<Real> factors = item_factors<Real>(items, bias, rows);
            require(0 <= first && first <= last && last <= factors.n_items, "no such items");
            require(flags.shape(0) == n_users, "one flag per user");
            const std::size_t n_judged = judged_items.shape(0);
            require(judged_scores.shape(0) == n_judged && above.shape(0) == n_judged &&
                        tied.shape(0) == n_judged && before.shape(0) == n_judged,
                    "one entry per judged item");
            const Ragged table = ragged(judged_indptr, judged_items, n_users);
            const Ragged without = ragged(excluded_indptr, excluded, n_users);
            const InstructionSet& chosen = find(set);
            nb::gil_scoped_release release;
            const SortedJudged<Real> sorted(table, n_users, judged_scores, above, tied, before);
            const RankFactors<Real> problem{users.data(),
                                            n_users,
                                            users.shape(1),
                                            factors,
                                            first,
                                            last,
                                            without,
                                            sorted.judged,
                                            limit,
                                            check,
                                            static_cast<NanRule>(nan_rule),
                                            flags.data()};
            return kernel(chosen, Real{}).rank_factors(problem);
        },
        nb::arg("instruction_set"), nb::arg("users").noconvert(), nb::arg("items").noconvert(),
        nb::arg("bias").noconvert().none(), nb::arg("rows").noconvert().none(), nb::arg("first"),
        nb::arg("last"), nb::arg("excluded_indptr").noconvert(), nb::arg("excluded").noconvert(),
        nb::arg("judged_indptr").noconvert(), nb::arg("judged").noconvert(),
        nb::arg("judged_scores").noconvert(), nb::arg("above").noconvert(),
        nb::arg("tied").noconvert(), nb::arg("before").noconvert(), nb::arg("limit"),
        nb::arg("check"), nb::arg("nan_rule"), nb::arg("flags").noconvert());

    m.def(
        "rank_scores",
        [](const std::string& set, Strided2<Real> scores, std::optional<In1<std::int64_t>> columns,
           In1<std::int64_t> excluded_indptr, In1<std::int32_t> excluded,
           In1<std::int64_t> judged_indptr, In1<std::int32_t> judged_items, In1<Real> judged_scores,
           Out1<std::int64_t> above, Out1<std::int64_t> tied, Out1<std::int64_t> before,
           std::int64_t limit, int nan_rule, Out1<std::uint32_t> flags,
           Out1<std::int64_t> no_candidates) {
            const std::size_t n_users = scores.shape(0);
            require(scores.shape(1) <= 1 || scores.stride(1) == 1,
                    "the scores of a user must be contiguous");
            require(flags.shape(0) == n_users && no_candidates.shape(0) == n_users,
                    "one flag per user");
            const std::size_t n_judged = judged_items.shape(0);
            require(judged_scores.shape(0) == n_judged && above.shape(0) == n_judged &&
                        tied.shape(0) == n_judged && before.shape(0) == n_judged,
                    "one entry per judged item");
            const Ragged table = ragged(judged_indptr, judged_items, n_users);
            const Ragged without = ragged(excluded_indptr, excluded, n_users);
            const InstructionSet& chosen = find(set);
            nb::gil_scoped_release release;
            const SortedJudged<Real> sorted(table, n_users, judged_scores, above, tied, before);
            const RankScores<Real> problem{
                scores.data(),
                static_cast<std::ptrdiff_t>(scores.stride(0)),
                n_users,
                columns ? columns->data() : nullptr,
                static_cast<std::int64_t>(columns ? columns->shape(0) : scores.shape(1)),
                without,
                sorted.judged,
                limit,
                static_cast<NanRule>(nan_rule),
                flags.data(),
                no_candidates.data()};
            return kernel(chosen, Real{}).rank_scores(problem);
        },
        nb::arg("instruction_set"), nb::arg("scores").noconvert(),
        nb::arg("columns").noconvert().none(), nb::arg("excluded_indptr").noconvert(),
        nb::arg("excluded").noconvert(), nb::arg("judged_indptr").noconvert(),
        nb::arg("judged").noconvert(), nb::arg("judged_scores").noconvert(),
        nb::arg("above").noconvert(), nb::arg("tied").noconvert(), nb::arg("before").noconvert(),
        nb::arg("limit"), nb::arg("nan_rule"), nb::arg("flags").noconvert(),
        nb::arg("no_candidates").noconvert());
}

template <class Value>
void bind_group_rows(nb::module_& m) {
    m.def(
        "group_rows",
        [](In1<std::int32_t> list, In1<Value> values, Out1<std::int64_t> next,
           Out1<Value> grouped) {
            require(values.shape(0) == list.shape(0), "one entry per row");
            nb::gil_scoped_release release;
            group_rows(list.data(), list.shape(0), values.data(), next.data(), grouped.data());
        },
        nb::arg("list").noconvert(), nb::arg("values").noconvert(), nb::arg("next").noconvert(),
        nb::arg("grouped").noconvert());
}

using Codes = In1<std::uint32_t>;
using Draws = In1<std::uint64_t>;

InteractionRows interaction_rows(const Codes& users, const Codes& items, const Draws& user_draws,
                                 const Draws& item_draws,
                                 const std::optional<In1<std::int64_t>>& times, bool float_times,
                                 const std::optional<In1<double>>& values) {
    const std::size_t n = users.shape(0);
    require(items.shape(0) == n && (!times || times->shape(0) == n) &&
                (!values || values->shape(0) == n),
            "one entry per row");
    return {n,
            users.data(),
            items.data(),
            user_draws.data(),
            item_draws.data(),
            item_draws.shape(0),
            times ? times->data() : nullptr,
            float_times,
            values ? values->data() : nullptr};
}

UserRange user_range(std::uint32_t first, const In1<std::int64_t>& counts, const Draws& draws) {
    require(first + counts.shape(0) <= draws.shape(0), "no such users");
    return {first, counts.shape(0), counts.data()};
}

RowOrder row_order(int order) {
    require(0 <= order && order <= static_cast<int>(RowOrder::kOldPairs), "no such order");
    return static_cast<RowOrder>(order);
}

void bind_splits(nb::module_& m) {
    m.def(
        "hold_first",
        [](Codes users, Codes items, Draws user_draws, Draws item_draws,
           std::optional<In1<std::int64_t>> times, bool float_times,
           std::optional<In1<double>> values, std::uint32_t first, In1<std::int64_t> counts,
           int order, In1<std::int64_t> sizes, Out1<std::uint8_t> held) {
            const InteractionRows rows =
                interaction_rows(users, items, user_draws, item_draws, times, float_times, values);
            const UserRange range = user_range(first, counts, user_draws);
            require(sizes.shape(0) == range.n, "one size per user");
            require(held.shape(0) == rows.n, "one entry per row");
            const RowOrder chosen = row_order(order);
            nb::gil_scoped_release release;
            return hold_first(rows, range, sizes.data(), chosen, held.data());
        },
        nb::arg("users").noconvert(), nb::arg("items").noconvert(),
        nb::arg("user_draws").noconvert(), nb::arg("item_draws").noconvert(),
        nb::arg("times").noconvert().none(), nb::arg("float_times"),
        nb::arg("values").noconvert().none(), nb::arg("first"), nb::arg("counts").noconvert(),
        nb::arg("order"), nb::arg("sizes").noconvert(), nb::arg("held").noconvert());
    m.def(
        "number_rows",
        [](Codes users, Codes items, Draws user_draws, Draws item_draws,
           std::optional<In1<std::int64_t>> times, bool float_times,
           std::optional<In1<double>> values, std::uint32_t first, In1<std::int64_t> counts,
           int order, Out1<std::uint32_t> places) {
            const InteractionRows rows =
                interaction_rows(users, items, user_draws, item_draws, times, float_times, values);
            const UserRange range = user_range(first, counts, user_draws);
            require(places.shape(0) == rows.n, "one entry per row");
            const RowOrder chosen = row_order(order);
            nb::gil_scoped_release release;
            return number_rows(rows, range, chosen, places.data());
        },
        nb::arg("users").noconvert(), nb::arg("items").noconvert(),
        nb::arg("user_draws").noconvert(), nb::arg("item_draws").noconvert(),
        nb::arg("times").noconvert().none(), nb::arg("float_times"),
        nb::arg("values").noconvert().none(), nb::arg("first"), nb::arg("counts").noconvert(),
        nb::arg("order"), nb::arg("places").noconvert());
    m.def(
        "hold_below",
        [](Codes users, Codes items, Draws user_draws, Draws item_draws, std::uint64_t limit,
           Out1<std::uint8_t> held) {
            const InteractionRows rows = interaction_rows(users, items, user_draws, item_draws,
                                                          std::nullopt, false, std::nullopt);
            require(held.shape(0) == rows.n, "one entry per row");
            nb::gil_scoped_release release;
            hold_below(rows, limit, held.data());
        },
        nb::arg("users").noconvert(), nb::arg("items").noconvert(),
        nb::arg("user_draws").noconvert(), nb::arg("item_draws").noconvert(), nb::arg("limit"),
        nb::arg("held").noconvert());
    m.def(
        "count_codes",
        [](Codes codes, Out1<std::int64_t> counts) {
            nb::gil_scoped_release release;
            count_codes(codes.data(), codes.shape(0), counts.shape(0), counts.data());
        },
        nb::arg("codes").noconvert(), nb::arg("counts").noconvert());
    m.def(
        "trim_core",
        [](Codes users, Codes items, Out1<std::int64_t> user_counts, Out1<std::int64_t> item_counts,
           std::int64_t least_user, std::int64_t least_item, bool backwards,
           Out1<std::uint8_t> kept) {
            const std::size_t n = users.shape(0);
            require(items.shape(0) == n && kept.shape(0) == n, "one entry per row");
            nb::gil_scoped_release release;
            return trim_core(users.data(), items.data(), n, user_counts.data(), item_counts.data(),
                             least_user, least_item, backwards, kept.data());
        },
        nb::arg("users").noconvert(), nb::arg("items").noconvert(),
        nb::arg("user_counts").noconvert(), nb::arg("item_counts").noconvert(),
        nb::arg("least_user"), nb::arg("least_item"), nb::arg("backwards"),
        nb::arg("kept").noconvert());
}

}  // namespace

NB_MODULE(_native, m) {
    // What is alive when Python ends is held by others: a test runner, a traceback, a notebook.
    nb::set_leak_warnings(false);
    m.doc() = "Counting where judged items land; see cpp/ranking.hpp.";
    m.def(
        "instruction_sets",
        [] {
            std::vector<std::string> names;
            for (const InstructionSet* set : instruction_sets()) names.emplace_back(set->name);
            return names;
        },
        "Instruction sets that this processor has, best first.");
    m.def(
        "best_first",
        [](In1<std::int64_t> indptr, In1<std::int64_t> above,
           std::optional<In1<std::int64_t>> before, Out1<std::int64_t> order) {
            require(indptr.shape(0) >= 1, "indptr must not be empty");
            const std::size_t n_users = indptr.shape(0) - 1;
            const std::size_t n_judged = above.shape(0);
            require((!before || before->shape(0) == n_judged) && order.shape(0) == n_judged &&
                        static_cast<std::size_t>(indptr.data()[n_users]) <= n_judged,
                    "one entry per judged item");
            nb::gil_scoped_release release;
            best_first(indptr.data(), n_users, above.data(), before ? before->data() : nullptr,
                       order.data());
        },
        nb::arg("indptr").noconvert(), nb::arg("above").noconvert(),
        nb::arg("before").noconvert().none(), nb::arg("order").noconvert());
    m.def(
        "rank_lists",
        [](In1<std::int32_t> items, std::optional<In1<double>> scores, In1<std::int64_t> begin,
           In1<std::int64_t> end, std::int64_t n_items, In1<std::int64_t> excluded_indptr,
           In1<std::int32_t> excluded, In1<std::int64_t> judged_indptr,
           In1<std::int32_t> judged_items, bool input_order, int nan_rule, Out1<std::int64_t> above,
           std::optional<Out1<std::int64_t>> tied, std::optional<Out1<std::int64_t>> before,
           Out1<std::uint32_t> flags, Out1<std::int64_t> given, Out1<std::int64_t> listed,
           Out1<std::int64_t> removed, Out1<std::int64_t> repeated, int order,
           In1<std::uint64_t> keys, Lists2<std::int32_t> top, Out1<std::int64_t> left) {
            const std::size_t n_users = begin.shape(0), n_judged = judged_items.shape(0);
            require(!scores || scores->shape(0) == items.shape(0), "one score per entry");
            require(end.shape(0) == n_users && flags.shape(0) == n_users &&
                        given.shape(0) == n_users && listed.shape(0) == n_users &&
                        removed.shape(0) == n_users && repeated.shape(0) == n_users,
                    "one entry per user");
            require(keys.shape(0) == n_users && top.shape(0) == n_users && left.shape(0) == n_users,
                    "one list per user");
            require(above.shape(0) == n_judged && (!tied || tied->shape(0) == n_judged) &&
                        (!before || before->shape(0) == n_judged),
                    "one entry per judged item");
            require(tied.has_value() == before.has_value() && (tied || !scores),
                    "what has scores may be tied");
            for (std::size_t user = 0; user < n_users; ++user) {
                require(0 <= begin.data()[user] && begin.data()[user] <= end.data()[user] &&
                            static_cast<std::size_t>(end.data()[user]) <= items.shape(0),
                        "no such entries");
            }
            const RankLists problem{
                {items.data(), scores ? scores->data() : nullptr, begin.data(), end.data()},
                n_users,
                static_cast<std::size_t>(n_items),
                ragged(excluded_indptr, excluded, n_users),
                ragged(judged_indptr, judged_items, n_users),
                input_order,
                static_cast<NanRule>(nan_rule),
                above.data(),
                tied ? tied->data() : nullptr,
                before ? before->data() : nullptr,
                flags.data(),
                given.data(),
                listed.data(),
                removed.data(),
                repeated.data(),
                static_cast<std::int64_t>(top.shape(1)),
                static_cast<Order>(order),
                keys.data(),
                top.data(),
                left.data()};
            nb::gil_scoped_release release;
            rank_lists(problem);
        },
        nb::arg("items").noconvert(), nb::arg("scores").noconvert().none(),
        nb::arg("begin").noconvert(), nb::arg("end").noconvert(), nb::arg("n_items"),
        nb::arg("excluded_indptr").noconvert(), nb::arg("excluded").noconvert(),
        nb::arg("judged_indptr").noconvert(), nb::arg("judged").noconvert(), nb::arg("input_order"),
        nb::arg("nan_rule"), nb::arg("above").noconvert(), nb::arg("tied").noconvert().none(),
        nb::arg("before").noconvert().none(), nb::arg("flags").noconvert(),
        nb::arg("given").noconvert(), nb::arg("listed").noconvert(), nb::arg("removed").noconvert(),
        nb::arg("repeated").noconvert(), nb::arg("order"), nb::arg("keys").noconvert(),
        nb::arg("top").noconvert(), nb::arg("left").noconvert());
    m.def(
        "count_rows",
        [](In1<std::int32_t> list, Out1<std::int64_t> counts) {
            nb::gil_scoped_release release;
            return count_rows(list.data(), list.shape(0), counts.shape(0), counts.data());
        },
        nb::arg("list").noconvert(), nb::arg("counts").noconvert());
    bind_group_rows<std::int32_t>(m);
    bind_group_rows<double>(m);
    m.def(
        "place_rows",
        [](In1<std::int32_t> list, In1<std::int32_t> items, In1<std::int32_t> places,
           std::int32_t first, In1<std::int64_t> indptr, Out1<std::int32_t> sorted_items) {
            const std::size_t n = list.shape(0);
            require(items.shape(0) == n && places.shape(0) == n, "one entry per row");
            nb::gil_scoped_release release;
            return place_rows(list.data(), n, items.data(), places.data(), first, indptr.data(),
                              sorted_items.data());
        },
        nb::arg("list").noconvert(), nb::arg("items").noconvert(), nb::arg("places").noconvert(),
        nb::arg("first"), nb::arg("indptr").noconvert(), nb::arg("sorted_items").noconvert());
    m.def(
        "hash_pieces",
        [](In1<std::uint8_t> data, std::size_t piece, Out1<std::uint64_t> hashes) {
            require(piece > 0, "pieces must not be empty");
            const std::size_t n = data.shape(0);
            require(hashes.shape(0) == n / piece + (n % piece > 0), "one hash per piece");
            nb::gil_scoped_release release;
            hash_pieces(data.data(), n, piece, hashes.data());
        },
        nb::arg("data").noconvert(), nb::arg("piece"), nb::arg("hashes").noconvert());
    m.def(
        "number_strings",
        [](nb::object column, Out1<std::uint32_t> numbers, Out1<std::int64_t> rows) {
            const nb::object capsule = column.attr("__arrow_c_stream__")();
            void* const stream = PyCapsule_GetPointer(capsule.ptr(), "arrow_array_stream");
            if (stream == nullptr) throw nb::python_error();
            const StringStream strings(*static_cast<ArrowArrayStream*>(stream));
            require(numbers.shape(0) == strings.n() && rows.shape(0) == strings.n(),
                    "one entry per row");
            require(strings.n() < std::numeric_limits<std::uint32_t>::max(), "too many rows");
            nb::gil_scoped_release release;
            return number_strings(strings.chunks(), numbers.data(), rows.data());
        },
        nb::arg("column"), nb::arg("numbers").noconvert(), nb::arg("rows").noconvert());
    bind_splits(m);
    bind<float>(m);
    bind<double>(m);
    bind_top<float>(m);
    bind_top<double>(m);
}
