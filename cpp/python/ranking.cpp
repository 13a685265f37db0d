// Bindings for ranking by factors and by scores. See ranking.hpp and sorting.hpp.
#include "../ranking.hpp"

#include <string>

#include "../sorting.hpp"
#include "arrays.hpp"

namespace recometer {
namespace {

const InstructionSet& find_set(const std::string& name) {
    for (const InstructionSet* set : instruction_sets()) {
        if (name == set->name) return *set;
    }
    throw std::invalid_argument("this processor has no instruction set " + name);
}

template <class Real>
ItemFactors<Real> item_factors(const In2<Real>& users, const Strided2<Real>& items,
                               const std::optional<In1<Real>>& bias,
                               const std::optional<In1<std::int64_t>>& rows) {
    require(users.shape(1) == items.shape(1),
            "users and items must have the same number of factors");
    require(!bias || bias->shape(0) == items.shape(0), "one bias per row of item factors");
    return {items.data(),
            static_cast<std::ptrdiff_t>(items.stride(0)),
            static_cast<std::ptrdiff_t>(items.stride(1)),
            data_or_null(bias),
            data_or_null(rows),
            static_cast<std::int64_t>(rows ? rows->shape(0) : items.shape(0))};
}

Falling falling(std::size_t n_users, std::int64_t n_items,
                const std::optional<In1<std::int32_t>>& by_place,
                const std::optional<In1<std::int32_t>>& places,
                const std::optional<In1<double>>& item_bound,
                const std::optional<In1<double>>& user_bound) {
    if (!by_place && !places && !item_bound && !user_bound) return {};
    if (!by_place || !places || !item_bound || !user_bound) {
        throw std::invalid_argument("an item order requires bounds on the scores");
    }
    const std::size_t n = static_cast<std::size_t>(n_items);
    require(by_place->shape(0) == n && places->shape(0) == n && item_bound->shape(0) == n,
            "one place and bound per item");
    require(user_bound->shape(0) == n_users, "one bound per user");
    return {by_place->data(), places->data(), user_bound->data(), item_bound->data()};
}

template <class Real>
Judged<Real> judged(const Ragged& table, const In1<std::int32_t>& items, const In1<Real>& scores,
                    const Out1<std::int64_t>& above, const Out1<std::int64_t>& tied,
                    const Out1<std::int64_t>& before) {
    const std::size_t n = items.shape(0);
    require(
        scores.shape(0) == n && above.shape(0) == n && tied.shape(0) == n && before.shape(0) == n,
        "one entry per judged item");
    return {table, scores.data(), nullptr, nullptr, above.data(), tied.data(), before.data()};
}

template <class Real>
Top<Real> top(std::size_t n_users, TieOrder order, const In1<std::uint64_t>& keys,
              const Out2<Real>& scores, const Out2<std::int32_t>& items,
              const Out1<std::int64_t>& n, const Out1<std::int64_t>& left) {
    const std::size_t k = scores.shape(1);
    require(k >= 1, "lists must have at least one place");
    require(scores.shape(0) == n_users && items.shape(0) == n_users && items.shape(1) == k &&
                keys.shape(0) == n_users && n.shape(0) == n_users && left.shape(0) == n_users,
            "the output arrays must have one row per user, with the same k");
    return {static_cast<std::int64_t>(k),
            order,
            keys.data(),
            scores.data(),
            items.data(),
            n.data(),
            left.data()};
}

/// Check the arguments that describe scores computed from factors, and return them as one object.
template <class Real>
FactorScores<Real> factor_scores(
    const In2<Real>& users, const Strided2<Real>& items, const std::optional<In1<Real>>& bias,
    const std::optional<In1<std::int64_t>>& rows, const std::optional<In1<std::int32_t>>& by_place,
    const std::optional<In1<std::int32_t>>& places, const std::optional<In1<double>>& item_bound,
    const std::optional<In1<double>>& user_bound, std::int64_t first, std::int64_t last,
    const In1<std::int64_t>& excluded_indptr, const In1<std::int32_t>& excluded, bool check,
    NanRule nan_rule, const Out1<std::uint32_t>& flags, const Out1<std::uint8_t>& finished) {
    const std::size_t n_users = users.shape(0);
    const ItemFactors<Real> factors = item_factors<Real>(users, items, bias, rows);
    require(0 <= first && first <= last && last <= factors.n_items, "no such items");
    require(flags.shape(0) == n_users && finished.shape(0) == n_users,
            "flags must have one entry per user");
    return {users.data(),
            n_users,
            users.shape(1),
            factors,
            falling(n_users, factors.n_items, by_place, places, item_bound, user_bound),
            first,
            last,
            ragged(excluded_indptr, excluded, n_users),
            check,
            nan_rule,
            flags.data(),
            finished.data()};
}

/// Checks the excluded items, and converts them to places if items are not scored in index order.
class OwnPlaces {
 public:
    template <class Real>
    explicit OwnPlaces(FactorScores<Real>& p) {
        require_ascending(p.excluded, p.n_users, p.items.n_items);
        if (p.falling.items == nullptr) return;
        places_.emplace(p.excluded, p.n_users, p.falling, p.first, p.last, p.finished);
        p.excluded = places_->table();
    }

 private:
    std::optional<ExcludedPlaces> places_;
};

template <class Real>
void bind_factors(nb::module_& m) {
    m.def(
        "score_items",
        [](const std::string& set, In2<Real> users, Strided2<Real> items,
           std::optional<In1<Real>> bias, std::optional<In1<std::int64_t>> rows,
           In1<std::int64_t> indptr, In1<std::int32_t> listed, Out1<Real> scores) {
            require(scores.shape(0) == listed.shape(0), "one score per listed item");
            const ScoreItems<Real> problem{users.data(),
                                           users.shape(0),
                                           users.shape(1),
                                           item_factors<Real>(users, items, bias, rows),
                                           ragged(indptr, listed, users.shape(0)),
                                           scores.data()};
            const InstructionSet& chosen = find_set(set);
            nb::gil_scoped_release release;
            require_items(problem.listed, problem.n_users, problem.items.n_items, 0);
            kernel(chosen, Real{}).score_items(problem);
        },
        nb::kw_only(), nb::arg("instruction_set"), exact("users"), exact("items"),
        exact_or_none("bias"), exact_or_none("rows"), exact("indptr"), exact("listed"),
        exact("scores"));
    m.def(
        "rank_factors",
        [](const std::string& set, In2<Real> users, Strided2<Real> items,
           std::optional<In1<Real>> bias, std::optional<In1<std::int64_t>> rows,
           std::optional<In1<std::int32_t>> by_place, std::optional<In1<std::int32_t>> places,
           std::optional<In1<double>> item_bound, std::optional<In1<double>> user_bound,
           std::int64_t first, std::int64_t last, In1<std::int64_t> excluded_indptr,
           In1<std::int32_t> excluded, In1<std::int64_t> judged_indptr,
           In1<std::int32_t> judged_items, In1<Real> judged_scores, Out1<std::int64_t> above,
           Out1<std::int64_t> tied, Out1<std::int64_t> before, std::optional<std::int64_t> limit,
           bool check, NanRule nan_rule, Out1<std::uint32_t> flags, Out1<std::uint8_t> finished) {
            const std::size_t n_users = users.shape(0);
            RankFactors<Real> problem{
                factor_scores<Real>(users, items, bias, rows, by_place, places, item_bound,
                                    user_bound, first, last, excluded_indptr, excluded, check,
                                    nan_rule, flags, finished),
                judged<Real>(ragged(judged_indptr, judged_items, n_users), judged_items,
                             judged_scores, above, tied, before),
                limit.value_or(kNoLimit)};
            const InstructionSet& chosen = find_set(set);
            nb::gil_scoped_release release;
            const OwnPlaces own(problem.scores);
            require_ascending(problem.judged.table, n_users, problem.scores.items.n_items);
            const SortedJudged<Real> sorted(problem.judged, n_users);
            problem.judged = sorted.judged();
            return kernel(chosen, Real{}).rank_factors(problem);
        },
        nb::kw_only(), nb::arg("instruction_set"), exact("users"), exact("items"),
        exact_or_none("bias"), exact_or_none("rows"), exact_or_none("by_place"),
        exact_or_none("places"), exact_or_none("item_bound"), exact_or_none("user_bound"),
        nb::arg("first"), nb::arg("last"), exact("excluded_indptr"), exact("excluded"),
        exact("judged_indptr"), exact("judged"), exact("judged_scores"), exact("above"),
        exact("tied"), exact("before"), nb::arg("limit").none(), nb::arg("check"),
        exact("nan_rule"), exact("flags"), exact("finished"));
    m.def(
        "top_factors",
        [](const std::string& set, In2<Real> users, Strided2<Real> items,
           std::optional<In1<Real>> bias, std::optional<In1<std::int64_t>> rows,
           std::optional<In1<std::int32_t>> by_place, std::optional<In1<std::int32_t>> places,
           std::optional<In1<double>> item_bound, std::optional<In1<double>> user_bound,
           std::int64_t first, std::int64_t last, In1<std::int64_t> excluded_indptr,
           In1<std::int32_t> excluded, TieOrder order, In1<std::uint64_t> keys,
           Out2<Real> top_scores, Out2<std::int32_t> top_items, Out1<std::int64_t> n,
           Out1<std::int64_t> left, bool check, NanRule nan_rule, Out1<std::uint32_t> flags,
           Out1<std::uint8_t> finished) {
            const std::size_t n_users = users.shape(0);
            TopFactors<Real> problem{
                factor_scores<Real>(users, items, bias, rows, by_place, places, item_bound,
                                    user_bound, first, last, excluded_indptr, excluded, check,
                                    nan_rule, flags, finished),
                top(n_users, order, keys, top_scores, top_items, n, left)};
            const InstructionSet& chosen = find_set(set);
            nb::gil_scoped_release release;
            const OwnPlaces own(problem.scores);
            kernel(chosen, Real{}).top_factors(problem);
        },
        nb::kw_only(), nb::arg("instruction_set"), exact("users"), exact("items"),
        exact_or_none("bias"), exact_or_none("rows"), exact_or_none("by_place"),
        exact_or_none("places"), exact_or_none("item_bound"), exact_or_none("user_bound"),
        nb::arg("first"), nb::arg("last"), exact("excluded_indptr"), exact("excluded"),
        exact("order"), exact("keys"), exact("top_scores"), exact("top_items"), exact("n"),
        exact("left"), nb::arg("check"), exact("nan_rule"), exact("flags"), exact("finished"));
}

/// Check the arguments that describe scores that are passed in, and return them as one object.
template <class Real>
GivenScores<Real> given_scores(const Strided2<Real>& scores,
                               const std::optional<In1<std::int64_t>>& columns,
                               const In1<std::int64_t>& excluded_indptr,
                               const In1<std::int32_t>& excluded, NanRule nan_rule,
                               const Out1<std::uint32_t>& flags,
                               const Out1<std::int64_t>& no_candidates) {
    const std::size_t n_users = scores.shape(0);
    require(scores.shape(1) <= 1 || scores.stride(1) == 1,
            "the scores of a user must be contiguous");
    require(flags.shape(0) == n_users && no_candidates.shape(0) == n_users,
            "flags must have one entry per user");
    return {scores.data(),
            static_cast<std::ptrdiff_t>(scores.stride(0)),
            n_users,
            data_or_null(columns),
            static_cast<std::int64_t>(columns ? columns->shape(0) : scores.shape(1)),
            ragged(excluded_indptr, excluded, n_users),
            nan_rule,
            flags.data(),
            no_candidates.data()};
}

template <class Real>
void bind_scores(nb::module_& m) {
    m.def(
        "rank_scores",
        [](const std::string& set, Strided2<Real> scores, std::optional<In1<std::int64_t>> columns,
           In1<std::int64_t> excluded_indptr, In1<std::int32_t> excluded,
           In1<std::int64_t> judged_indptr, In1<std::int32_t> judged_items, In1<Real> judged_scores,
           Out1<std::int64_t> above, Out1<std::int64_t> tied, Out1<std::int64_t> before,
           std::optional<std::int64_t> limit, NanRule nan_rule, Out1<std::uint32_t> flags,
           Out1<std::int64_t> no_candidates) {
            const std::size_t n_users = scores.shape(0);
            RankScores<Real> problem{given_scores<Real>(scores, columns, excluded_indptr, excluded,
                                                        nan_rule, flags, no_candidates),
                                     judged<Real>(ragged(judged_indptr, judged_items, n_users),
                                                  judged_items, judged_scores, above, tied, before),
                                     limit.value_or(kNoLimit)};
            const InstructionSet& chosen = find_set(set);
            nb::gil_scoped_release release;
            require_ascending(problem.scores.excluded, n_users, problem.scores.n_items);
            require_ascending(problem.judged.table, n_users, problem.scores.n_items);
            const SortedJudged<Real> sorted(problem.judged, n_users);
            problem.judged = sorted.judged();
            return kernel(chosen, Real{}).rank_scores(problem);
        },
        nb::kw_only(), nb::arg("instruction_set"), exact("scores"), exact_or_none("columns"),
        exact("excluded_indptr"), exact("excluded"), exact("judged_indptr"), exact("judged"),
        exact("judged_scores"), exact("above"), exact("tied"), exact("before"),
        nb::arg("limit").none(), exact("nan_rule"), exact("flags"), exact("no_candidates"));
    m.def(
        "top_scores",
        [](const std::string& set, Strided2<Real> scores, std::optional<In1<std::int64_t>> columns,
           In1<std::int64_t> excluded_indptr, In1<std::int32_t> excluded, TieOrder order,
           In1<std::uint64_t> keys, Out2<Real> top_scores, Out2<std::int32_t> top_items,
           Out1<std::int64_t> n, Out1<std::int64_t> left, NanRule nan_rule,
           Out1<std::uint32_t> flags, Out1<std::int64_t> no_candidates) {
            const std::size_t n_users = scores.shape(0);
            const TopScores<Real> problem{
                given_scores<Real>(scores, columns, excluded_indptr, excluded, nan_rule, flags,
                                   no_candidates),
                top(n_users, order, keys, top_scores, top_items, n, left)};
            const InstructionSet& chosen = find_set(set);
            nb::gil_scoped_release release;
            require_ascending(problem.scores.excluded, n_users, problem.scores.n_items);
            kernel(chosen, Real{}).top_scores(problem);
        },
        nb::kw_only(), nb::arg("instruction_set"), exact("scores"), exact_or_none("columns"),
        exact("excluded_indptr"), exact("excluded"), exact("order"), exact("keys"),
        exact("top_scores"), exact("top_items"), exact("n"), exact("left"), exact("nan_rule"),
        exact("flags"), exact("no_candidates"));
}

}  // namespace

void bind_ranking(nb::module_& m) {
    bind_factors<float>(m);
    bind_factors<double>(m);
    bind_scores<float>(m);
    bind_scores<double>(m);
    m.def(
        "best_first",
        [](In1<std::int64_t> indptr, In1<std::int64_t> above,
           std::optional<In1<std::int64_t>> before, Out1<std::int64_t> order) {
            require(indptr.shape(0) >= 1, "indptr must not be empty");
            const std::size_t n_users = indptr.shape(0) - 1;
            const std::size_t n_judged = above.shape(0);
            require((!before || before->shape(0) == n_judged) && order.shape(0) == n_judged,
                    "one entry per judged item");
            require_offsets(indptr.data(), n_users, n_judged);
            nb::gil_scoped_release release;
            best_first(indptr.data(), n_users, above.data(), data_or_null(before), order.data());
        },
        exact("indptr"), exact("above"), exact_or_none("before"), exact("order"));
    m.def(
        "longest_first",
        [](In1<double> lengths, Out1<std::int32_t> order, Out1<double> bounds) {
            const std::size_t n = lengths.shape(0);
            require(order.shape(0) == n && bounds.shape(0) == n, "one place per length");
            nb::gil_scoped_release release;
            longest_first(lengths.data(), n, order.data(), bounds.data());
        },
        exact("lengths"), exact("order"), exact("bounds"));
}

}  // namespace recometer
