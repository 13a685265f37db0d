// Bindings for lists that were ranked elsewhere, and for tables, sums, splits, hashes and strings.
#include <algorithm>
#include <limits>
#include <utility>

#include "../arrow.hpp"
#include "../hashing.hpp"
#include "../lists.hpp"
#include "../popularity.hpp"
#include "../splits.hpp"
#include "../strings.hpp"
#include "../sums.hpp"
#include "../tables.hpp"
#include "arrays.hpp"

namespace recometer {
namespace {

using Codes = In1<std::uint32_t>;
using Draws = In1<std::uint64_t>;
using Times = std::optional<In1<std::int64_t>>;
using Values = std::optional<In1<double>>;

Lists lists(const In1<std::int32_t>& items, const Values& scores, const In1<std::int64_t>& begin,
            const In1<std::int64_t>& end) {
    require(!scores || scores->shape(0) == items.shape(0), "one score per entry");
    require(end.shape(0) == begin.shape(0), "one entry per user");
    for (std::size_t user = 0; user < begin.shape(0); ++user) {
        require(0 <= begin.data()[user] && begin.data()[user] <= end.data()[user] &&
                    static_cast<std::size_t>(end.data()[user]) <= items.shape(0),
                "no such entries");
    }
    return {items.data(), data_or_null(scores), begin.data(), end.data()};
}

/// Check that each entry of the users' lists is an item or padding.
void require_listed(const Lists& lists, std::size_t n_users, std::int64_t n_items) {
    std::int32_t most = -1;
    for (std::size_t user = 0; user < n_users; ++user) {
        for (std::int64_t at = lists.begin[user]; at < lists.end[user]; ++at) {
            most = std::max(most, lists.items[at]);
        }
    }
    require(most < n_items, "there is no such item");
}

void bind_lists(nb::module_& m) {
    m.def(
        "rank_lists",
        [](In1<std::int32_t> items, Values scores, In1<std::int64_t> begin, In1<std::int64_t> end,
           std::int64_t n_items, In1<std::int64_t> excluded_indptr, In1<std::int32_t> excluded,
           In1<std::int64_t> judged_indptr, In1<std::int32_t> judged, bool input_order,
           NanRule nan_rule, Out1<std::int64_t> above, std::optional<Out1<std::int64_t>> tied,
           std::optional<Out1<std::int64_t>> before, Out1<std::uint32_t> flags,
           Out1<std::int64_t> given, Out1<std::int64_t> listed, Out1<std::int64_t> removed,
           Out1<std::int64_t> repeated, TieOrder order, Draws keys, Out2<std::int32_t> top,
           Out1<std::int64_t> left) {
            const std::size_t n_users = begin.shape(0), n_judged = judged.shape(0);
            require(n_items >= 0, "no such items");
            require(flags.shape(0) == n_users && given.shape(0) == n_users &&
                        listed.shape(0) == n_users && removed.shape(0) == n_users &&
                        repeated.shape(0) == n_users,
                    "one entry per user");
            require(keys.shape(0) == n_users && top.shape(0) == n_users && left.shape(0) == n_users,
                    "the output arrays must have one row per user");
            require(above.shape(0) == n_judged && (!tied || tied->shape(0) == n_judged) &&
                        (!before || before->shape(0) == n_judged),
                    "one entry per judged item");
            require(tied.has_value() == before.has_value() && (tied || !scores),
                    "lists with scores require arrays for ties");
            const RankLists problem{lists(items, scores, begin, end),
                                    n_users,
                                    static_cast<std::size_t>(n_items),
                                    ragged(excluded_indptr, excluded, n_users),
                                    ragged(judged_indptr, judged, n_users),
                                    input_order,
                                    nan_rule,
                                    above.data(),
                                    data_or_null(tied),
                                    data_or_null(before),
                                    flags.data(),
                                    given.data(),
                                    listed.data(),
                                    removed.data(),
                                    repeated.data(),
                                    static_cast<std::int64_t>(top.shape(1)),
                                    order,
                                    keys.data(),
                                    top.data(),
                                    left.data()};
            nb::gil_scoped_release release;
            require_listed(problem.lists, n_users, n_items);
            require_items(problem.excluded, n_users, n_items, -1);
            require_items(problem.judged, n_users, n_items, -1);
            rank_lists(problem);
        },
        nb::kw_only(), exact("items"), exact_or_none("scores"), exact("begin"), exact("end"),
        nb::arg("n_items"), exact("excluded_indptr"), exact("excluded"), exact("judged_indptr"),
        exact("judged"), nb::arg("input_order"), exact("nan_rule"), exact("above"),
        exact_or_none("tied"), exact_or_none("before"), exact("flags"), exact("given"),
        exact("listed"), exact("removed"), exact("repeated"), exact("order"), exact("keys"),
        exact("top"), exact("left"));
    m.def(
        "count_rows",
        [](In1<std::int32_t> list, Out1<std::int64_t> counts) {
            nb::gil_scoped_release release;
            return count_rows(list.data(), list.shape(0), counts.shape(0), counts.data());
        },
        exact("list"), exact("counts"));
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
        nb::kw_only(), exact("list"), exact("items"), exact("places"), nb::arg("first"),
        exact("indptr"), exact("sorted_items"));
}

template <class Item>
void bind_rows_ascend(nb::module_& m) {
    m.def(
        "rows_ascend",
        [](In1<std::int64_t> indptr, In1<Item> items, std::int64_t n_items, std::size_t first,
           std::size_t last) {
            require(first <= last && last < indptr.shape(0), "no such users");
            const std::int64_t begin = indptr.data()[first], end = indptr.data()[last];
            require(0 <= begin && end <= static_cast<std::int64_t>(items.shape(0)), "no such rows");
            require_offsets(indptr.data() + first, last - first, items.shape(0));
            nb::gil_scoped_release release;
            return rows_ascend(indptr.data(), items.data(), n_items, first, last);
        },
        nb::kw_only(), exact("indptr"), exact("items"), nb::arg("n_items"), nb::arg("first"),
        nb::arg("last"));
}

void bind_tables(nb::module_& m) {
    bind_rows_ascend<std::int32_t>(m);
    bind_rows_ascend<std::int64_t>(m);
    m.def(
        "find_rows",
        [](In1<std::int64_t> indptr, In1<std::int32_t> items,
           std::optional<In1<std::int64_t>> users, In1<std::int64_t> other_indptr,
           In1<std::int32_t> other_items, Out1<std::int64_t> found) {
            const Ragged rows = table(indptr, items), other = table(other_indptr, other_items);
            const TableUsers places = table_users(indptr.shape(0) - 1, users, other_indptr);
            require(found.shape(0) == items.shape(0), "one entry per row");
            nb::gil_scoped_release release;
            find_rows(rows, places, other, found.data());
        },
        nb::kw_only(), exact("indptr"), exact("items"), exact_or_none("users"),
        exact("other_indptr"), exact("other_items"), exact("found"));
}

/// Check the offsets and the shapes of the arrays, and return the rows.
PlacedRows placed_rows(const In1<std::int64_t>& indptr, const In1<std::int64_t>& place,
                       std::size_t n_terms, const In1<std::int64_t>& cutoffs,
                       const Out2<double>& sums) {
    require(indptr.shape(0) >= 1, "indptr must not be empty");
    const std::size_t n_users = indptr.shape(0) - 1;
    const auto n_rows = static_cast<std::size_t>(indptr.data()[n_users]);
    require(place.shape(0) == n_rows && n_terms == n_rows, "one entry per row");
    require_offsets(indptr.data(), n_users, n_rows);
    require(sums.shape(0) == cutoffs.shape(0) && sums.shape(1) == n_users,
            "one sum per cut-off and user");
    return {n_users, indptr.data(), place.data()};
}

void bind_sums(nb::module_& m) {
    m.attr("ROWS_OF_PART") = kRowsOfPart;
    m.attr("ROWS_WITHOUT_PARTS") = kRowsWithoutParts;
    m.def(
        "add_within",
        [](In1<std::int64_t> indptr, In1<std::int64_t> place, In1<double> terms,
           In1<std::int64_t> cutoffs, Out2<double> sums) {
            const PlacedRows rows = placed_rows(indptr, place, terms.shape(0), cutoffs, sums);
            nb::gil_scoped_release release;
            add_within(rows, terms.data(), cutoffs.data(), cutoffs.shape(0), sums.data());
        },
        exact("indptr"), exact("place"), exact("terms"), exact("cutoffs"), exact("sums"));
    for (const auto& [name, add] :
         {std::pair{"add_hits", &add_hits}, {"add_precisions", &add_precisions}}) {
        m.def(
            name,
            [add = add](In1<std::int64_t> indptr, In1<std::int64_t> place,
                        In1<std::int64_t> cutoffs, Out2<double> sums) {
                const PlacedRows rows = placed_rows(indptr, place, place.shape(0), cutoffs, sums);
                nb::gil_scoped_release release;
                add(rows, cutoffs.data(), cutoffs.shape(0), sums.data());
            },
            exact("indptr"), exact("place"), exact("cutoffs"), exact("sums"));
    }
    m.def(
        "add_discounted",
        [](In1<std::int64_t> indptr, In1<std::int64_t> place, Strided1<double> gains,
           In1<double> logarithms, In1<std::int64_t> cutoffs, Out2<double> sums) {
            const PlacedRows rows = placed_rows(indptr, place, gains.shape(0), cutoffs, sums);
            const Gains row_gains{gains.data(), static_cast<std::ptrdiff_t>(gains.stride(0))};
            nb::gil_scoped_release release;
            add_discounted(rows, row_gains, logarithms.data(), logarithms.shape(0), cutoffs.data(),
                           cutoffs.shape(0), sums.data());
        },
        exact("indptr"), exact("place"), exact("gains"), exact("logarithms"), exact("cutoffs"),
        exact("sums"));
    m.def(
        "count_within",
        [](In1<std::int64_t> indptr, In1<std::int64_t> place, In1<std::int64_t> limits,
           Out1<std::int64_t> counts) {
            const std::size_t n_users = counts.shape(0);
            require(indptr.shape(0) == n_users + 1 && limits.shape(0) == n_users,
                    "one limit and one count per user");
            require(static_cast<std::size_t>(indptr.data()[n_users]) == place.shape(0),
                    "one place per row");
            require_offsets(indptr.data(), n_users, place.shape(0));
            nb::gil_scoped_release release;
            count_within({n_users, indptr.data(), place.data()}, limits.data(), counts.data());
        },
        exact("indptr"), exact("place"), exact("limits"), exact("counts"));
}

void bind_popularity(nb::module_& m) {
    m.def(
        "count_items",
        [](In1<std::int64_t> indptr, In1<std::int32_t> items,
           std::optional<In1<std::int64_t>> users, Out1<std::int64_t> counts,
           Out1<std::int64_t> sums) {
            const Ragged rows = table(indptr, items);
            const TableUsers places = table_users(sums.shape(0), users, indptr);
            const Popularity output{counts.shape(0), counts.data(), sums.data()};
            nb::gil_scoped_release release;
            count_items(rows, items.shape(0), places, output);
        },
        nb::kw_only(), exact("indptr"), exact("items"), exact_or_none("users"), exact("counts"),
        exact("sums"));
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
        exact("list"), exact("values"), exact("next"), exact("grouped"));
}

template <class Item>
void bind_take_lists(nb::module_& m) {
    m.def(
        "take_lists",
        [](In2<Item> items, std::int32_t n_items, In1<std::int64_t> users, Out1<bool> came,
           std::size_t first, Out2<std::int32_t> taken, Out1<std::int64_t> taken_users) {
            const std::size_t n = items.shape(0), k = items.shape(1), room = taken.shape(0);
            require(taken_users.shape(0) == room, "one user per list");
            const bool fits = n > 0 && k == taken.shape(1) && first <= room && n <= room - first;
            if (!fits || users.shape(0) != n) return false;
            nb::gil_scoped_release release;
            return take_lists(items.data(), n, k, n_items, users.data(), came.shape(0), came.data(),
                              taken.data() + first * k, taken_users.data() + first);
        },
        exact("items"), nb::arg("n_items"), exact("users"), exact("came"), nb::arg("first"),
        exact("taken"), exact("taken_users"));
}

InteractionRows interaction_rows(const Codes& users, const Codes& items, const Draws& user_draws,
                                 const Draws& item_draws, const Times& times, bool float_times,
                                 const Values& values) {
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
            data_or_null(times),
            float_times,
            data_or_null(values)};
}

UserRange user_range(std::uint32_t first, const In1<std::int64_t>& counts, const Draws& draws) {
    require(first + counts.shape(0) <= draws.shape(0), "no such users");
    return {first, counts.shape(0), counts.data()};
}

void bind_splits(nb::module_& m) {
    m.def(
        "hold_first",
        [](Codes users, Codes items, Draws user_draws, Draws item_draws, Times times,
           bool float_times, Values values, std::uint32_t first, In1<std::int64_t> counts,
           RowOrder order, In1<std::int64_t> sizes, Out1<std::uint8_t> held) {
            const InteractionRows rows =
                interaction_rows(users, items, user_draws, item_draws, times, float_times, values);
            const UserRange range = user_range(first, counts, user_draws);
            require(sizes.shape(0) == range.n, "one size per user");
            require(held.shape(0) == rows.n, "one entry per row");
            nb::gil_scoped_release release;
            return hold_first(rows, range, sizes.data(), order, held.data());
        },
        nb::kw_only(), exact("users"), exact("items"), exact("user_draws"), exact("item_draws"),
        exact_or_none("times"), nb::arg("float_times"), exact_or_none("values"), nb::arg("first"),
        exact("counts"), exact("order"), exact("sizes"), exact("held"));
    m.def(
        "number_rows",
        [](Codes users, Codes items, Draws user_draws, Draws item_draws, Times times,
           bool float_times, Values values, std::uint32_t first, In1<std::int64_t> counts,
           RowOrder order, Out1<std::uint32_t> places) {
            const InteractionRows rows =
                interaction_rows(users, items, user_draws, item_draws, times, float_times, values);
            const UserRange range = user_range(first, counts, user_draws);
            require(places.shape(0) == rows.n, "one entry per row");
            nb::gil_scoped_release release;
            return number_rows(rows, range, order, places.data());
        },
        nb::kw_only(), exact("users"), exact("items"), exact("user_draws"), exact("item_draws"),
        exact_or_none("times"), nb::arg("float_times"), exact_or_none("values"), nb::arg("first"),
        exact("counts"), exact("order"), exact("places"));
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
        nb::kw_only(), exact("users"), exact("items"), exact("user_draws"), exact("item_draws"),
        nb::arg("limit"), exact("held"));
    m.def(
        "count_codes",
        [](Codes codes, Out1<std::int64_t> counts) {
            nb::gil_scoped_release release;
            count_codes(codes.data(), codes.shape(0), counts.shape(0), counts.data());
        },
        exact("codes"), exact("counts"));
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
        nb::kw_only(), exact("users"), exact("items"), exact("user_counts"), exact("item_counts"),
        nb::arg("least_user"), nb::arg("least_item"), nb::arg("backwards"), exact("kept"));
}

void bind_hashes_and_strings(nb::module_& m) {
    m.def(
        "hash_pieces",
        [](In1<std::uint8_t> data, std::size_t piece, Out1<std::uint64_t> hashes) {
            require_hashes(data, piece, hashes);
            nb::gil_scoped_release release;
            hash_pieces(data.data(), data.shape(0), piece, hashes.data());
        },
        exact("data"), nb::arg("piece"), exact("hashes"));
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
        nb::arg("column"), exact("numbers"), exact("rows"));
}

}  // namespace

void bind_rows(nb::module_& m) {
    bind_lists(m);
    bind_group_rows<std::int32_t>(m);
    bind_group_rows<double>(m);
    bind_take_lists<std::int64_t>(m);
    bind_take_lists<std::int32_t>(m);
    bind_tables(m);
    bind_sums(m);
    bind_popularity(m);
    bind_splits(m);
    bind_hashes_and_strings(m);
}

}  // namespace recometer
