// Runs the kernel on systems without Python. .ci/check_portability compares the output across
// systems.
//
// Scores are random. Most of them are inexact, and some are equal, so a checksum changes if a
// processor, a compiler or an operating system rounds or orders scores differently.
#include <cstdio>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../cpp/background.hpp"
#include "../../cpp/hashing.hpp"
#include "../../cpp/lists.hpp"
#include "../../cpp/ranking.hpp"
#include "../../cpp/sorting.hpp"
#include "../../cpp/splits.hpp"
#include "../../cpp/sums.hpp"

namespace {

using namespace recometer;

constexpr std::size_t kUsers = 37, kItems = 1003, kFactors = 19, kPerUser = 6, kK = 10;

void require(bool condition, const char* what) {
    if (!condition) throw std::logic_error(what);
}

/// Random numbers that are the same on every system.
class Draws {
 public:
    explicit Draws(std::uint64_t seed) : state_(seed) {}
    std::uint64_t bits() { return mix(state_++); }
    std::size_t below(std::size_t n) { return static_cast<std::size_t>(bits() % n); }
    double real() { return static_cast<double>(bits() >> 11) / 9007199254740992.0 - 0.5; }

 private:
    std::uint64_t state_;
};

/// A hash of all values added so far.
class Checksum {
 public:
    template <class T>
    void add(const std::vector<T>& values) {
        const auto* bytes = reinterpret_cast<const unsigned char*>(values.data());
        value_ = mix(value_ ^ xxh64(bytes, values.size() * sizeof(T)));
    }
    unsigned long long value() const { return value_; }

 private:
    std::uint64_t value_ = 0;
};

/// A table with `n` items per user, in ascending order. Items are even if `odd` is 0, and odd if it
/// is 1, so that no item is both excluded and judged.
struct Table {
    std::vector<std::int64_t> indptr{0};
    std::vector<std::int32_t> items;

    Table(Draws& draw, std::size_t n, std::size_t odd) {
        const std::size_t step = kItems / 2 / n;
        for (std::size_t user = 0; user < kUsers; ++user) {
            for (std::size_t i = 0; i < n; ++i) {
                const std::size_t item = 2 * (i * step + draw.below(step)) + odd;
                items.push_back(static_cast<std::int32_t>(item));
            }
            indptr.push_back(static_cast<std::int64_t>(items.size()));
        }
    }
    Ragged ragged() const { return {indptr.data(), items.data()}; }
};

template <class Real>
std::vector<Real> factors(Draws& draw, std::size_t n) {
    std::vector<Real> values(n * kFactors);
    for (Real& value : values) value = static_cast<Real>(draw.real());
    // Make every third row a copy of an earlier row, so that some scores are tied.
    for (std::size_t row = 2; row < n; row += 3) {
        std::memcpy(&values[row * kFactors], &values[(row - 2) * kFactors],
                    kFactors * sizeof(Real));
    }
    return values;
}

/// Rank judged items and find the top items, both from factors and from precomputed scores, and
/// return a checksum of the results.
template <class Real>
unsigned long long ranks(const InstructionSet& set) {
    const Kernel<Real>& functions = kernel(set, Real{});
    Draws draw(sizeof(Real));
    const std::vector<Real> users = factors<Real>(draw, kUsers),
                            items = factors<Real>(draw, kItems);
    const Table judged(draw, kPerUser, 0), excluded(draw, 2 * kPerUser, 1);
    const ItemFactors<Real> item_factors{items.data(), kFactors, 1, nullptr, nullptr, kItems};
    std::vector<std::int32_t> every;
    std::vector<std::int64_t> rows{0};
    for (std::size_t user = 0; user < kUsers; ++user) {
        for (std::size_t item = 0; item < kItems; ++item) {
            every.push_back(static_cast<std::int32_t>(item));
        }
        rows.push_back(static_cast<std::int64_t>(every.size()));
    }
    std::vector<Real> all(every.size()), own(judged.items.size());
    functions.score_items(
        {users.data(), kUsers, kFactors, item_factors, {rows.data(), every.data()}, all.data()});
    functions.score_items(
        {users.data(), kUsers, kFactors, item_factors, judged.ragged(), own.data()});
    Checksum sum;
    sum.add(all);
    sum.add(own);

    std::vector<std::uint64_t> keys;
    for (std::size_t user = 0; user < kUsers; ++user) keys.push_back(draw.bits());
    std::vector<std::int64_t> by_factors;
    for (const bool given : {false, true}) {
        std::vector<std::uint32_t> flags(kUsers);
        std::vector<std::uint8_t> finished(kUsers);
        std::vector<std::int64_t> none(kUsers), n(kUsers), left(kUsers);
        std::vector<std::int64_t> above(own.size()), tied(own.size()), before(own.size());
        std::vector<Real> best(kUsers * kK);
        std::vector<std::int32_t> best_items(kUsers * kK);
        const FactorScores<Real> products{users.data(), kUsers,
                                          kFactors,     item_factors,
                                          Falling{},    0,
                                          kItems,       excluded.ragged(),
                                          false,        NanRule::kUndefined,
                                          flags.data(), finished.data()};
        const GivenScores<Real> scores{
            all.data(),          kItems,       kUsers,     nullptr, kItems, excluded.ragged(),
            NanRule::kUndefined, flags.data(), none.data()};
        const Judged<Real> unsorted{judged.ragged(), own.data(),  nullptr,      nullptr,
                                    above.data(),    tied.data(), before.data()};
        const SortedJudged<Real> sorted(unsorted, kUsers);
        const Top<Real> top{kK,          TieOrder::kRandom, keys.data(),
                            best.data(), best_items.data(), n.data(),
                            left.data()};
        if (given) {
            require(functions.rank_scores({scores, sorted.judged(), kNoLimit}) == -1, "scores");
            functions.top_scores({scores, top});
        } else {
            require(functions.rank_factors({products, sorted.judged(), kNoLimit}) == -1, "factors");
            functions.top_factors({products, top});
        }
        std::vector<std::int64_t> counts;
        for (const auto* part : {&above, &tied, &before, &n, &left}) {
            counts.insert(counts.end(), part->begin(), part->end());
        }
        counts.insert(counts.end(), best_items.begin(), best_items.end());
        require(!given || counts == by_factors, "ranks from factors equal ranks from scores");
        by_factors = counts;
        sum.add(best);
    }
    sum.add(by_factors);
    return sum.value();
}

unsigned long long lists() {
    Draws draw(11);
    const Table judged(draw, kPerUser, 0), excluded(draw, kPerUser, 1);
    std::vector<std::int32_t> items;
    std::vector<double> scores;
    std::vector<std::int64_t> begin, end;
    std::vector<std::uint64_t> keys;
    for (std::size_t user = 0; user < kUsers; ++user) {
        begin.push_back(static_cast<std::int64_t>(items.size()));
        for (std::size_t i = 0; i < 200; ++i) {
            items.push_back(static_cast<std::int32_t>(draw.below(kItems + 1)) - 1);
            scores.push_back(static_cast<double>(draw.below(50)) / 7);
        }
        end.push_back(static_cast<std::int64_t>(items.size()));
        keys.push_back(draw.bits());
    }
    Checksum sum;
    for (const TieOrder order : {TieOrder::kItem, TieOrder::kItemDescending, TieOrder::kRandom}) {
        const std::size_t n = judged.items.size();
        std::vector<std::int64_t> above(n), tied(n), before(n), left(kUsers);
        std::vector<std::int64_t> given(kUsers), listed(kUsers), removed(kUsers), repeated(kUsers);
        std::vector<std::uint32_t> flags(kUsers);
        std::vector<std::int32_t> top(kUsers * kK, -1);
        rank_lists({{items.data(), scores.data(), begin.data(), end.data()},
                    kUsers,
                    kItems,
                    excluded.ragged(),
                    judged.ragged(),
                    false,
                    NanRule::kUndefined,
                    above.data(),
                    tied.data(),
                    before.data(),
                    flags.data(),
                    given.data(),
                    listed.data(),
                    removed.data(),
                    repeated.data(),
                    kK,
                    order,
                    keys.data(),
                    top.data(),
                    left.data()});
        for (const auto* part : {&above, &tied, &before, &listed, &removed, &repeated, &left}) {
            sum.add(*part);
        }
        sum.add(top);
    }
    return sum.value();
}

unsigned long long sums() {
    Draws draw(12);
    std::vector<std::int64_t> indptr{0}, places;
    std::vector<double> terms, logarithms;
    for (const std::size_t n : {std::size_t{0}, std::size_t{3}, std::size_t{5000}}) {
        for (std::size_t row = 0; row < n; ++row) {
            places.push_back(static_cast<std::int64_t>(2 * row));
            terms.push_back(draw.real());
        }
        indptr.push_back(static_cast<std::int64_t>(places.size()));
    }
    for (std::size_t i = 0; i < 10100; ++i) logarithms.push_back(1 + static_cast<double>(i) / 3);
    const PlacedRows rows{3, indptr.data(), places.data()};
    const std::vector<std::int64_t> cutoffs{1, 10, 100000};
    Checksum sum;
    std::vector<double> found(3 * cutoffs.size());
    add_within(rows, terms.data(), cutoffs.data(), cutoffs.size(), found.data());
    sum.add(found);
    add_precisions(rows, cutoffs.data(), cutoffs.size(), found.data());
    sum.add(found);
    add_discounted(rows, {terms.data(), 1}, logarithms.data(), logarithms.size(), cutoffs.data(),
                   cutoffs.size(), found.data());
    sum.add(found);
    return sum.value();
}

unsigned long long sorting() {
    Draws draw(13);
    Checksum sum;
    for (const TieOrder order : {TieOrder::kItem, TieOrder::kItemDescending, TieOrder::kRandom}) {
        std::vector<Entry<double>> entries;
        for (std::int32_t item = 0; item < 3000; ++item) {
            entries.push_back({static_cast<double>(draw.below(100)) / 3, item});
        }
        sort_best(entries.data(), 3000, order, draw.bits());
        std::vector<std::int32_t> items;
        for (const auto& entry : entries) items.push_back(entry.item);
        sum.add(items);
    }
    std::vector<double> lengths, bounds(3000);
    for (std::size_t i = 0; i < 3000; ++i) lengths.push_back(draw.real() + 1);
    lengths[7] = std::numeric_limits<double>::infinity();
    std::vector<std::int32_t> order(3000);
    longest_first(lengths.data(), 3000, order.data(), bounds.data());
    sum.add(order);
    sum.add(bounds);
    return sum.value();
}

/// Number each user's rows on background threads, and return a checksum of the numbers.
unsigned long long splits() {
    Draws draw(14);
    constexpr std::size_t kRows = 5000;
    std::vector<std::uint32_t> users, items;
    std::vector<std::uint64_t> user_draws(kUsers), item_draws(kItems);
    std::vector<std::int64_t> times, counts(kUsers);
    std::vector<double> values;
    for (auto& bits : user_draws) bits = draw.bits();
    for (auto& bits : item_draws) bits = draw.bits();
    for (std::size_t row = 0; row < kRows; ++row) {
        users.push_back(static_cast<std::uint32_t>(draw.below(kUsers)));
        items.push_back(static_cast<std::uint32_t>(draw.below(kItems)));
        times.push_back(static_cast<std::int64_t>(draw.below(20)));
        values.push_back(draw.real());
    }
    count_codes(users.data(), kRows, kUsers, counts.data());
    const InteractionRows rows{
        kRows,  users.data(), items.data(), user_draws.data(), item_draws.data(),
        kItems, times.data(), false,        values.data()};
    std::vector<std::vector<std::uint32_t>> places(2, std::vector<std::uint32_t>(kRows));
    Background background;
    for (const std::size_t at : {std::size_t{0}, std::size_t{1}}) {
        background.add([&, at] {
            number_rows(rows, {0, kUsers, counts.data()},
                        at == 0 ? RowOrder::kLatest : RowOrder::kDrawn, places[at].data());
        });
    }
    background.start(2);
    require(background.wait(60), "the threads must end within 60 seconds");
    Checksum sum;
    for (const auto& part : places) sum.add(part);
    return sum.value();
}

}  // namespace

int main() {
    std::vector<std::string> missing{
#if defined(RECOMETER_X86)
        "avx512_vbmi2", "avx512", "avx2"
#endif
    };
    for (const InstructionSet* set : instruction_sets()) {
        std::printf("%s %016llx %016llx\n", set->name, ranks<float>(*set), ranks<double>(*set));
        for (auto& name : missing) {
            if (name == set->name) name.clear();
        }
    }
    for (const auto& name : missing) {
        if (!name.empty()) std::printf("%s skipped: this processor lacks it\n", name.c_str());
    }
    std::printf("lists %016llx\nsums %016llx\n", lists(), sums());
    std::printf("sorting %016llx\nsplits %016llx\n", sorting(), splits());
    return 0;
}
