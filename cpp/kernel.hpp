// The kernel, written once over an instruction set S and compiled once for each.
//
// S offers vectors of kLanes Reals and, for the counting, vectors of as many integers:
//     reaches(a, b)   a >= b per lane (false for NaN); equals(a, b)
//     lookup(t, i)    t[i] per lane, for tables of up to kTable entries
//     set_bit<B>(m,x) x | 1 << B in the lanes of m
//     one_hot(x)      1 << x
//     parity, majority  the two outputs of a full adder, bit by bit
//     count_bit(x, b) in how many lanes bit b is set
// A tile of scores is kUsers users x 2 vectors of items.
//
// How a candidate is counted. The distinct scores of a user's judged items, ascending, are cut
// into groups of up to 2^kLevels - 1 thresholds. A vector of candidates descends a binary search
// tree per group (a lookup and a comparison per level), which leaves in each lane which of the
// 2^levels gaps it falls into, as a one-hot word. These words are added up bit by bit with
// carry-save adders: plane p holds bit p of 32 (or 64) counters per lane. The last threshold
// that a lane reached on its way is the only one that it can equal: one comparison finds ties,
// and the few lanes that have one are settled one by one.
//
// Everything here has internal linkage and no static initialiser: a function or object shared
// between the instruction sets could be taken from the wrong one by the linker.
#pragma once

#include <cstdlib>
#include <cstring>
#include <new>

#include "ranking.hpp"

namespace recometer {
namespace {

constexpr int kChunkVectors = 16;  // vectors counted in one go
constexpr int kLowPlanes = 4;      // log2(kChunkVectors)
constexpr int kPlanes = kLowPlanes + 8;
constexpr std::int64_t kMaxChunks = 255;          // counted between two flushes: 8 planes
constexpr std::size_t kPackedBytes = 256 * 1024;  // packed item factors: part of level-2 cache

template <class T>
class Buffer {
 public:
    explicit Buffer(std::size_t size) {
        const std::size_t bytes = (size * sizeof(T) + 64 + 63) / 64 * 64;
        data_ = static_cast<T*>(std::aligned_alloc(64, bytes));
        if (data_ == nullptr) throw std::bad_alloc();
    }
    ~Buffer() { std::free(data_); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    T* get() const { return data_; }
    template <class Index>
    T& operator[](Index i) const {
        return data_[i];
    }

 private:
    T* data_;
};

template <class Real>
inline Real not_a_number() {
    return static_cast<Real>(__builtin_nan(""));
}

template <class Real>
inline Real infinity() {
    return static_cast<Real>(__builtin_inf());
}

inline std::int64_t first_at_least(const std::int32_t* items, std::int64_t from, std::int64_t to,
                                   std::int64_t item) {
    while (from < to) {
        const std::int64_t middle = from + (to - from) / 2;
        if (items[middle] < item) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return from;
}

// ---------------------------------------------------------------- counting

template <class S>
struct Counting {
    using Real = typename S::Real;
    using Vec = typename S::Vec;
    using Int = typename S::Int;
    using Mask = typename S::Mask;
    static constexpr int kTable = 1 << (S::kLevels - 1);
    static constexpr int kGroup = (1 << S::kLevels) - 1;
    static constexpr int kGroupTable = kTable * S::kLevels;
    static constexpr int kChunk = kChunkVectors * S::kLanes;

    /// Add the chunk's candidates to the planes of a group; write a mask of the lanes of each
    /// vector that equal a threshold, and return whether there is one.
    template <int L>
    __attribute__((noinline)) static std::uint32_t count(const Real* scores, const Real* tables,
                                                         Int* planes, int n_planes,
                                                         std::uint32_t* ties) {
        decltype(S::table(tables)) level[S::kLevels];
        for (int l = 0; l < L; ++l) level[l] = S::table(tables + l * kTable);
        const Vec root = S::broadcast(tables[0]);
        const Vec none = S::broadcast(not_a_number<Real>());
        std::uint32_t any = 0;

        auto descend = [&](int v) __attribute__((always_inline)) {
            const Vec score = S::load(scores + v * S::kLanes);
            Mask up = S::reaches(score, root);
            Int path = S::template set_bit<0>(up, S::zero());
            Vec reached = S::select(up, root, none);
            descend_level<L, 1>(level, score, path, reached);
            ties[v] = S::bits(S::equals(score, reached));
            any |= ties[v];
            return S::one_hot(path);
        };

        Int ones = S::load_bits(planes), twos = S::load_bits(planes + 1);
        Int fours = S::load_bits(planes + 2), eights = S::load_bits(planes + 3);
        Int carry8[2];
#pragma GCC unroll 2
        for (int h = 0; h < 2; ++h) {
            Int carry4[2];
#pragma GCC unroll 2
            for (int q = 0; q < 2; ++q) {
                Int carry2[2];
#pragma GCC unroll 2
                for (int p = 0; p < 2; ++p) {
                    const int v = 8 * h + 4 * q + 2 * p;
                    const Int a = descend(v), b = descend(v + 1);
                    carry2[p] = S::majority(ones, a, b);
                    ones = S::parity(ones, a, b);
                }
                carry4[q] = S::majority(twos, carry2[0], carry2[1]);
                twos = S::parity(twos, carry2[0], carry2[1]);
            }
            carry8[h] = S::majority(fours, carry4[0], carry4[1]);
            fours = S::parity(fours, carry4[0], carry4[1]);
        }
        Int sixteens = S::majority(eights, carry8[0], carry8[1]);
        eights = S::parity(eights, carry8[0], carry8[1]);
        S::store_bits(planes, ones);
        S::store_bits(planes + 1, twos);
        S::store_bits(planes + 2, fours);
        S::store_bits(planes + 3, eights);
        for (int p = kLowPlanes; p < n_planes; ++p) {
            const Int old = S::load_bits(planes + p);
            S::store_bits(planes + p, S::exclusive(old, sixteens));
            sixteens = S::both(old, sixteens);
        }
        return any;
    }

    template <int L, int kBit, class Table>
    __attribute__((always_inline)) static void descend_level(const Table* level, const Vec& score,
                                                             Int& path, Vec& reached) {
        if constexpr (kBit < L) {
            const Vec threshold = S::lookup(level[kBit], path);
            const Mask up = S::reaches(score, threshold);
            path = S::template set_bit<kBit>(up, path);
            reached = S::select(up, threshold, reached);
            descend_level<L, kBit + 1>(level, score, path, reached);
        }
    }

    static std::uint32_t count(int levels, const Real* scores, const Real* tables, Int* planes,
                               int n_planes, std::uint32_t* ties) {
        switch (levels) {
            case 1:
                return count<1>(scores, tables, planes, n_planes, ties);
            case 2:
                return count<2>(scores, tables, planes, n_planes, ties);
            case 3:
                return count<3>(scores, tables, planes, n_planes, ties);
            case 4:
                if constexpr (S::kLevels >= 4)
                    return count<4>(scores, tables, planes, n_planes, ties);
                [[fallthrough]];
            default:
                if constexpr (S::kLevels >= 5)
                    return count<5>(scores, tables, planes, n_planes, ties);
        }
        return 0;
    }

    static int levels_for(int thresholds) {
        int levels = 1;
        while ((1 << levels) - 1 < thresholds) ++levels;
        return levels;
    }

    /// The rank (number of thresholds reached) that a path stands for: its bits, reversed.
    static int rank_of(int path, int levels) {
        int rank = 0;
        for (int l = 0; l < levels; ++l) rank |= ((path >> l) & 1) << (levels - 1 - l);
        return rank;
    }

    static void build_tables(const Real* thresholds, int n, int levels, Real* tables) {
        for (int l = 0; l < levels; ++l) {
            for (int path = 0; path < kTable; ++path) {
                const int step = 1 << (levels - 1 - l);
                const int at = rank_of(path & ((1 << l) - 1), levels) + step - 1;
                tables[l * kTable + path] =
                    path < (1 << l) && at < n ? thresholds[at] : not_a_number<Real>();
            }
        }
    }

    /// Planes that can hold the counts of so many chunks.
    static int planes_for(std::int64_t chunks) {
        int planes = kLowPlanes;
        while ((1ll << (planes - kLowPlanes)) <= chunks) ++planes;
        return planes;
    }

    /// Add to reached[0..n) how many candidates reach each threshold, and clear the planes.
    static void flush(Int* planes, int n_planes, int n, int levels, std::int64_t* reached) {
        std::int64_t in_gap[kGroup + 1] = {};
        for (int path = 1; path < (1 << levels); ++path) {
            const int rank = rank_of(path, levels);
            if (rank > n) continue;
            std::int64_t sum = 0;
            for (int p = 0; p < n_planes; ++p) {
                sum += static_cast<std::int64_t>(S::count_bit(S::load_bits(planes + p), path)) << p;
            }
            in_gap[rank] = sum;
        }
        std::int64_t sum = 0;
        for (int j = n; j >= 1; --j) {
            sum += in_gap[j];
            reached[j - 1] += sum;
        }
        for (int p = 0; p < n_planes; ++p) S::store_bits(planes + p, S::zero());
    }
};

/// The distinct scores of a block of users' judged items, the thresholds, and their counts.
///
/// What is touched together lies together: with many judged items per user the thresholds do
/// not fit into the nearer caches.
template <class S>
class Board {
 public:
    using Real = typename S::Real;
    using Int = typename S::Int;
    using C = Counting<S>;

    Board(const Judged<Real>& judged, const Ragged& excluded, std::size_t n_users,
          std::int64_t first, std::int64_t last, std::int64_t limit)
        : judged_(judged),
          excluded_(excluded),
          n_users_(n_users),
          first_(first),
          last_(last),
          limit_(limit),
          user_(n_users),
          value_(judged_count()),
          reached_(judged_count()),
          ties_(judged_count()),
          tables_(table_count() * C::kGroupTable) {
        std::size_t tables = 0;
        for (std::size_t u = 0; u < n_users; ++u) {
            User& user = user_[u];
            user.tables = tables_.get() + tables * C::kGroupTable;
            user.begin = judged.table.indptr[u] - judged.table.indptr[0];
            user.end = collect(u, user.begin);
            user.active = user.begin;
            user.next_excluded =
                first_at_least(excluded.items, excluded.indptr[u], excluded.indptr[u + 1], first);
            const std::size_t groups =
                static_cast<std::size_t>(user.end - user.begin + C::kGroup - 1) / C::kGroup;
            tables += groups;
            if (groups > max_groups_) max_groups_ = groups;
            if (!drop(u)) build(user);
        }
    }

    bool active(std::size_t u) const { return user_[u].active < user_[u].end; }
    std::size_t max_groups() const { return max_groups_; }

    /// Call use(i - from) for the excluded items i of the user in [from, to).
    template <class F>
    void each_excluded(std::size_t u, std::int64_t from, std::int64_t to, F use) const {
        const std::int64_t end = excluded_.indptr[u + 1];
        for (std::int64_t e = user_[u].next_excluded; e < end && excluded_.items[e] < to; ++e) {
            use(excluded_.items[e] - from);
        }
    }

    /// Count a chunk of the user's scores: the items from, from + 1, ..., NaN where none is.
    void count(std::size_t u, const Real* scores, std::int64_t from, Int* planes, int n_planes) {
        User& user = user_[u];
        const std::int64_t end = excluded_.indptr[u + 1];
        while (user.next_excluded < end && excluded_.items[user.next_excluded] < from + C::kChunk) {
            ++user.next_excluded;
        }
        std::uint32_t ties[kChunkVectors];
        const Real* tables = user.tables;
        for (std::int64_t group = user.active; group < user.end; group += C::kGroup) {
            const int n = size(group, user);
            if (C::count(C::levels_for(n), scores, tables, planes, n_planes, ties) != 0) {
                settle(group, n, scores, from, ties);
            }
            tables += C::kGroupTable;
            planes += kPlanes;
        }
    }

    void flush(std::size_t u, Int* planes, int n_planes) {
        const User& user = user_[u];
        for (std::int64_t group = user.active; group < user.end; group += C::kGroup) {
            const int n = size(group, user);
            C::flush(planes, n_planes, n, C::levels_for(n), reached_.get() + group);
            planes += kPlanes;
        }
    }

    /// Give up the thresholds that `limit` candidates exceed; returns whether any were.
    bool drop(std::size_t u) {
        User& user = user_[u];
        const std::int64_t old = user.active;
        for (; user.active < user.end; ++user.active) {
            const std::int64_t t = user.active;
            const std::int64_t earlier = judged_.above[judged_.order[ties_[t].begin]];
            if (earlier + reached_[t] - ties_[t].equal < limit_) break;
        }
        if (user.active == old) return false;
        build(user);
        return true;
    }

    /// Add the counts to the table. Returns -1, or a judged item that did not meet itself.
    std::int64_t finish() {
        for (std::size_t u = 0; u < n_users_; ++u) {
            const User& user = user_[u];
            for (std::int64_t t = user.begin; t < user.end; ++t) add(t, t >= user.active);
        }
        return lost_;
    }

 private:
    struct User {
        std::int64_t begin, end;  // its thresholds, ascending
        std::int64_t active;      // those before are given up
        std::int64_t next_excluded;
        Real* tables;
    };
    struct Ties {
        std::int64_t begin, end;  // the judged items with this score: positions in Judged::order
        std::int64_t passed;      // those before lie below the items counted so far
        std::int64_t equal;       // candidates with this score
    };

    std::size_t judged_count() const {
        return static_cast<std::size_t>(judged_.table.indptr[n_users_] - judged_.table.indptr[0]);
    }

    std::size_t table_count() const {
        std::size_t count = 0;
        for (std::size_t u = 0; u < n_users_; ++u) {
            count += static_cast<std::size_t>(judged_.table.indptr[u + 1] -
                                              judged_.table.indptr[u] + C::kGroup - 1) /
                     C::kGroup;
        }
        return count;
    }

    static int size(std::int64_t group, const User& user) {
        return static_cast<int>(user.end - group < C::kGroup ? user.end - group : C::kGroup);
    }

    std::int32_t item_at(std::int64_t ordered) const {
        return judged_.table.items[judged_.order[ordered]];
    }

    /// Write the user's distinct scores from `t` on; returns the end.
    std::int64_t collect(std::size_t u, std::int64_t t) const {
        const std::int64_t end = judged_.order_end[u];
        for (std::int64_t o = judged_.table.indptr[u]; o < end; ++t) {
            const Real value = judged_.scores[judged_.order[o]];
            Ties ties{o, o, o, 0};
            while (ties.end < end && judged_.scores[judged_.order[ties.end]] == value) ++ties.end;
            while (ties.passed < ties.end && item_at(ties.passed) < first_) ++ties.passed;
            o = ties.end;
            value_[t] = value;
            reached_[t] = 0;
            ties_[t] = ties;
        }
        return t;
    }

    void build(const User& user) const {
        Real* tables = user.tables;
        for (std::int64_t group = user.active; group < user.end; group += C::kGroup) {
            const int n = size(group, user);
            C::build_tables(value_.get() + group, n, C::levels_for(n), tables);
            tables += C::kGroupTable;
        }
    }

    /// Settle the candidates of a chunk that equal a threshold of the group.
    void settle(std::int64_t group, int n, const Real* scores, std::int64_t from,
                const std::uint32_t* ties) {
        std::int64_t t = group;
        for (int v = 0; v < kChunkVectors; ++v) {
            for (std::uint32_t mask = ties[v]; mask != 0; mask &= mask - 1) {
                const int at = v * S::kLanes + __builtin_ctz(mask);
                if (!(value_[t] == scores[at])) t = find(group, group + n, scores[at]);
                const std::int64_t item = from + at;
                Ties& tie = ties_[t];
                for (; tie.passed < tie.end && item_at(tie.passed) <= item; ++tie.passed) {
                    const std::int64_t j = judged_.order[tie.passed];
                    judged_.before[j] += tie.equal;
                    if (judged_.table.items[j] != item) lost_ = j;
                }
                ++tie.equal;
            }
        }
    }

    /// The threshold of that value in [from, to).
    std::int64_t find(std::int64_t from, std::int64_t to, Real value) const {
        while (to - from > 1) {
            const std::int64_t middle = from + (to - from) / 2;
            if (value_[middle] <= value) {
                from = middle;
            } else {
                to = middle;
            }
        }
        return from;
    }

    void add(std::int64_t t, bool kept) {
        const Ties& tie = ties_[t];
        for (std::int64_t o = tie.begin; o < tie.end; ++o) {
            const std::int64_t j = judged_.order[o];
            const std::int64_t item = judged_.table.items[j];
            const bool here = item >= first_ && item < last_;
            judged_.above[j] += reached_[t] - tie.equal;
            judged_.tied[j] += tie.equal - (here && o < tie.passed ? 1 : 0);
            if (item >= last_) judged_.before[j] += tie.equal;
            if (here && kept && o >= tie.passed) lost_ = j;
        }
    }

    const Judged<Real> judged_;
    const Ragged excluded_;
    const std::size_t n_users_;
    const std::int64_t first_, last_, limit_;
    Buffer<User> user_;
    Buffer<Real> value_;
    Buffer<std::int64_t> reached_;
    Buffer<Ties> ties_;
    Buffer<Real> tables_;
    std::size_t max_groups_ = 1;
    std::int64_t lost_ = -1;
};

// ---------------------------------------------------------------- scores

/// The scores of up to 8 items for one user: independent chains hide the latency of fma.
template <class S, int N>
inline void dot(const typename S::Real* user, std::size_t n_factors,
                const ItemFactors<typename S::Real>& items, const std::int32_t* which,
                typename S::Real* out) {
    using Real = typename S::Real;
    const Real* factors[N];
    Real sum[N];
    for (int i = 0; i < N; ++i) {
        const std::int64_t row = items.rows == nullptr ? which[i] : items.rows[which[i]];
        factors[i] = items.data + row * items.item_stride;
        sum[i] = items.bias == nullptr ? Real{0} : items.bias[row];
    }
    for (std::size_t f = 0; f < n_factors; ++f) {
        const Real u = user[f];
        for (int i = 0; i < N; ++i) {
            sum[i] = S::fma(u, *factors[i], sum[i]);
            factors[i] += items.factor_stride;
        }
    }
    for (int i = 0; i < N; ++i) out[i] = sum[i];
}

template <class S>
void score_items(const ScoreItems<typename S::Real>& p) {
    for (std::size_t u = 0; u < p.n_users; ++u) {
        const auto* user = p.users + u * p.n_factors;
        std::int64_t j = p.listed.indptr[u];
        const std::int64_t end = p.listed.indptr[u + 1];
        for (; j + 8 <= end; j += 8) {
            dot<S, 8>(user, p.n_factors, p.items, p.listed.items + j, p.scores + j);
        }
        for (; j < end; ++j) {
            dot<S, 1>(user, p.n_factors, p.items, p.listed.items + j, p.scores + j);
        }
    }
}

/// Panels of 2 vectors of items: a row of biases (NaN for padding), then a row per factor.
template <class S>
void pack_items(const ItemFactors<typename S::Real>& items, std::size_t n_factors,
                std::int64_t from, std::int64_t to, std::int64_t padded_to, typename S::Real* out) {
    using Real = typename S::Real;
    constexpr int kPanel = 2 * S::kLanes;
    static const Real kZero[1] = {0};
    for (std::int64_t first = from; first < padded_to; first += kPanel) {
        const Real* source[kPanel];
        std::ptrdiff_t step[kPanel];
        for (int i = 0; i < kPanel; ++i) {
            const std::int64_t item = first + i;
            if (item < to) {
                const std::int64_t row = items.rows == nullptr ? item : items.rows[item];
                source[i] = items.data + row * items.item_stride;
                step[i] = items.factor_stride;
                out[i] = items.bias == nullptr ? Real{0} : items.bias[row];
            } else {
                source[i] = kZero;
                step[i] = 0;
                out[i] = not_a_number<Real>();
            }
        }
        out += kPanel;
        if (items.factor_stride == 1 && first + kPanel <= to) {
            for (std::size_t f = 0; f < n_factors; ++f, out += kPanel) {
                for (int i = 0; i < kPanel; ++i) out[i] = source[i][f];
            }
        } else {
            for (std::size_t f = 0; f < n_factors; ++f, out += kPanel) {
                for (int i = 0; i < kPanel; ++i) {
                    out[i] = *source[i];
                    source[i] += step[i];
                }
            }
        }
    }
}

/// kUsers x 2 vectors of scores. panel: see pack_items; users: [n_factors][kUsers].
template <class S>
void score_tile(const typename S::Real* panel, const typename S::Real* users, std::size_t n_factors,
                typename S::Real* out, std::ptrdiff_t out_stride) {
    using Vec = typename S::Vec;
    constexpr int kUsers = S::kUsers;
    Vec left[kUsers], right[kUsers];
    const Vec bias_left = S::load(panel), bias_right = S::load(panel + S::kLanes);
#pragma GCC unroll 14
    for (int u = 0; u < kUsers; ++u) {
        left[u] = bias_left;
        right[u] = bias_right;
    }
    for (std::size_t f = 0; f < n_factors; ++f) {
        panel += 2 * S::kLanes;
        const Vec a = S::load(panel), b = S::load(panel + S::kLanes);
#pragma GCC unroll 14
        for (int u = 0; u < kUsers; ++u) {
            const Vec x = S::broadcast(users[u]);
            left[u] = S::fma(x, a, left[u]);
            right[u] = S::fma(x, b, right[u]);
        }
        users += kUsers;
    }
#pragma GCC unroll 14
    for (int u = 0; u < kUsers; ++u) {
        S::store(out + u * out_stride, left[u]);
        S::store(out + u * out_stride + S::kLanes, right[u]);
    }
}

/// Note scores that are not finite, and apply the rule for NaN; -inf is `absent` where given.
template <class Real>
void check_scores(Real* scores, std::int64_t n, NanRule rule, bool minus_infinity_is_absent,
                  std::uint32_t& flags, std::int64_t& absent) {
    const Real replacement = rule == NanRule::kFirst  ? infinity<Real>()
                             : rule == NanRule::kLast ? -infinity<Real>()
                                                      : not_a_number<Real>();
    for (std::int64_t i = 0; i < n; ++i) {
        const Real x = scores[i];
        if (x - x == 0) continue;
        if (x != x) {
            if (rule == NanRule::kUndefined) flags |= kNanScore;
            scores[i] = replacement;
        } else if (x < 0 && minus_infinity_is_absent) {
            scores[i] = not_a_number<Real>();
            ++absent;
        } else {
            flags |= kInfiniteScore;
        }
    }
}

/// Take excluded items out of a chunk and check the rest where that is asked for.
template <class S>
void finish_chunk(const Board<S>& board, std::size_t u, typename S::Real* scores, std::int64_t from,
                  std::int64_t to, bool check, NanRule rule, bool minus_infinity_is_absent,
                  std::uint32_t* flags, std::int64_t& absent) {
    using Real = typename S::Real;
    if (check) {
        board.each_excluded(u, from, to, [=](std::int64_t at) { scores[at] = Real{0}; });
        check_scores(scores, to - from, rule, minus_infinity_is_absent, flags[u], absent);
    }
    board.each_excluded(u, from, to, [=](std::int64_t at) { scores[at] = not_a_number<Real>(); });
}

// ---------------------------------------------------------------- ranking

template <class S>
std::int64_t rank_factors(const RankFactors<typename S::Real>& p) {
    using Real = typename S::Real;
    using Int = typename S::Int;
    using C = Counting<S>;
    constexpr std::int64_t kChunk = C::kChunk;
    constexpr std::size_t kUsers = S::kUsers;
    constexpr std::int64_t kPanel = 2 * S::kLanes;

    const std::size_t row = p.n_factors + 1;
    const std::int64_t range = p.last - p.first;
    std::int64_t chunks = static_cast<std::int64_t>(kPackedBytes / (sizeof(Real) * row)) / kChunk;
    if (chunks > (range + kChunk - 1) / kChunk) chunks = (range + kChunk - 1) / kChunk;
    if (chunks > kMaxChunks) chunks = kMaxChunks;
    if (chunks < 1) chunks = 1;
    const int n_planes = C::planes_for(chunks);

    Board<S> board(p.judged, p.excluded, p.n_users, p.first, p.last, p.limit);
    const std::size_t user_planes = board.max_groups() * kPlanes;
    Buffer<Real> items(static_cast<std::size_t>(chunks * kChunk) * row);
    Buffer<Real> users((p.n_users + kUsers) * (p.n_factors + 1));
    Buffer<Real> scores(kUsers * static_cast<std::size_t>(kChunk));
    Buffer<Int> planes(kUsers * user_planes);
    std::memset(static_cast<void*>(planes.get()), 0, kUsers * user_planes * sizeof(Int));
    // Users with something left to count; all of them where scores are to be looked at.
    Buffer<std::size_t> active(p.n_users);
    std::size_t n_active = 0;
    for (std::size_t u = 0; u < p.n_users; ++u) {
        if (p.check || board.active(u)) active[n_active++] = u;
    }

    bool users_changed = true;
    for (std::int64_t from = p.first; from < p.last && n_active > 0; from += chunks * kChunk) {
        const std::int64_t to = p.last - from < chunks * kChunk ? p.last : from + chunks * kChunk;
        const std::int64_t n_chunks = (to - from + kChunk - 1) / kChunk;
        pack_items<S>(p.items, p.n_factors, from, to, from + n_chunks * kChunk, items.get());
        if (users_changed) {
            for (std::size_t first = 0; first < n_active; first += kUsers) {
                Real* out = users.get() + first * p.n_factors;
                for (std::size_t u = 0; u < kUsers; ++u) {
                    const Real* in =
                        first + u < n_active ? p.users + active[first + u] * p.n_factors : nullptr;
                    for (std::size_t f = 0; f < p.n_factors; ++f) {
                        out[f * kUsers + u] = in == nullptr ? Real{0} : in[f];
                    }
                }
            }
            users_changed = false;
        }
        for (std::size_t first = 0; first < n_active; first += kUsers) {
            const std::size_t n = n_active - first < kUsers ? n_active - first : kUsers;
            const Real* panel = items.get();
            for (std::int64_t c = from; c < to; c += kChunk) {
                const std::int64_t c_to = to - c < kChunk ? to : c + kChunk;
                for (std::int64_t i = 0; i < kChunk; i += kPanel) {
                    score_tile<S>(panel, users.get() + first * p.n_factors, p.n_factors,
                                  scores.get() + i, kChunk);
                    panel += kPanel * static_cast<std::int64_t>(row);
                }
                for (std::size_t u = 0; u < n; ++u) {
                    Real* const chunk = scores.get() + u * static_cast<std::size_t>(kChunk);
                    std::int64_t absent = 0;
                    finish_chunk(board, active[first + u], chunk, c, c_to, p.check, p.nan_rule,
                                 false, p.flags, absent);
                    board.count(active[first + u], chunk, c, planes.get() + u * user_planes,
                                n_planes);
                }
            }
            for (std::size_t u = 0; u < n; ++u) {
                board.flush(active[first + u], planes.get() + u * user_planes, n_planes);
            }
        }
        // Users whose judged items have all been given up need no more scores.
        std::size_t left = 0;
        for (std::size_t a = 0; a < n_active; ++a) {
            board.drop(active[a]);
            if (p.check || board.active(active[a])) active[left++] = active[a];
        }
        if (left < n_active) users_changed = true;
        n_active = left;
    }
    return board.finish();
}

template <class S>
std::int64_t rank_scores(const RankScores<typename S::Real>& p) {
    using Real = typename S::Real;
    using Int = typename S::Int;
    using C = Counting<S>;
    constexpr std::int64_t kChunk = C::kChunk;

    Board<S> board(p.judged, p.excluded, p.n_users, 0, p.n_items, p.limit);
    Buffer<Real> scores(static_cast<std::size_t>(kChunk));
    const std::size_t n = board.max_groups() * kPlanes;
    Buffer<Int> planes(n);
    std::memset(static_cast<void*>(planes.get()), 0, n * sizeof(Int));
    for (std::size_t u = 0; u < p.n_users; ++u) {
        const Real* const in = p.scores + static_cast<std::ptrdiff_t>(u) * p.user_stride;
        std::int64_t absent = 0, pending = 0;
        // Scores are looked at even where nothing is left to count: flags and candidates.
        for (std::int64_t from = 0; from < p.n_items; from += kChunk) {
            const std::int64_t to = p.n_items - from < kChunk ? p.n_items : from + kChunk;
            for (std::int64_t i = from; i < to; ++i) {
                scores[static_cast<std::size_t>(i - from)] =
                    in[p.columns == nullptr ? i : p.columns[i]];
            }
            for (std::int64_t i = to; i < from + kChunk; ++i) {
                scores[static_cast<std::size_t>(i - from)] = not_a_number<Real>();
            }
            finish_chunk(board, u, scores.get(), from, to, true, p.nan_rule, true, p.flags, absent);
            board.count(u, scores.get(), from, planes.get(), kPlanes);
            if (++pending == kMaxChunks) {
                board.flush(u, planes.get(), kPlanes);
                board.drop(u);
                pending = 0;
            }
        }
        board.flush(u, planes.get(), kPlanes);
        p.no_candidates[u] += absent;
    }
    return board.finish();
}

}  // namespace
}  // namespace recometer
