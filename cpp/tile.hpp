// Compute the scores of packed users and items in a register tile, compute the scores of judged
// items one by one, and handle scores that are not finite.
#pragma once

#include <cstring>

#include "basics.hpp"
#include "counting.hpp"
#include "ranking.hpp"

namespace recometer {
namespace {

// The maximum size of the packed item factors in bytes. They fill part of the level-2 cache.
constexpr std::size_t kPackedBytes = std::size_t{512} * 1024;

/// Return the number of chunks of items to pack at once (at least 1).
template <class Real>
inline std::int64_t packed_chunks(std::size_t n_factors, std::int64_t n_items, std::int64_t chunk) {
    const std::int64_t all = (n_items + chunk - 1) / chunk;
    const std::int64_t fit =
        static_cast<std::int64_t>(kPackedBytes / (sizeof(Real) * (n_factors + 1))) / chunk;
    const std::int64_t chunks = fit < all ? fit : all;
    return chunks < 1 ? 1 : chunks;
}

/// Return the number of items to score before the next check for finished users (see Falling). This
/// number grows, because fewer and fewer users finish.
inline std::int64_t next_step(std::int64_t step, std::int64_t chunk, std::int64_t most) {
    const std::int64_t more = step + (step / chunk + 1) / 2 * chunk;
    return more < most ? more : most;
}

template <class Real>
constexpr std::size_t kLine = 64 / sizeof(Real);  // the number of factors that fit into a cache
                                                  // line

template <class Real>
inline std::int64_t row_of(const ItemFactors<Real>& items, std::int64_t item) {
    return items.rows == nullptr ? item : items.rows[item];
}

/// Return the address of an item's first factor.
template <class Real>
inline const Real* factors_of(const ItemFactors<Real>& items, std::int64_t item) {
    return items.data + row_of(items, item) * items.item_stride;
}

template <class Real>
inline Real bias_of(const ItemFactors<Real>& items, std::int64_t item) {
    return items.bias == nullptr ? Real{0} : items.bias[row_of(items, item)];
}

/// Score N items for one user. The N sums are independent of each other, which hides the latency of
/// fma.
template <class S, int N>
inline void dot(const typename S::Real* user, std::size_t n_factors,
                const ItemFactors<typename S::Real>& items, const std::int32_t* which,
                typename S::Real* out) {
    using Real = typename S::Real;
    const Real* factors[N];
    Real sum[N];
    for (int i = 0; i < N; ++i) {
        factors[i] = factors_of(items, which[i]);
        sum[i] = bias_of(items, which[i]);
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
    using Real = typename S::Real;
    constexpr int kAtOnce = 8;
    const std::int64_t last = p.listed.indptr[p.n_users];
    for (std::size_t u = 0; u < p.n_users; ++u) {
        const Real* const user = p.users + u * p.n_factors;
        const std::int64_t end = p.listed.indptr[u + 1];
        int n = kAtOnce;
        for (std::int64_t j = p.listed.indptr[u]; j < end; j += n) {
            while (n > end - j) n /= 2;
            for (std::int64_t next = j + kAtOnce; next < j + kAtOnce + n && next < last; ++next) {
                const Real* const row = factors_of(p.items, p.listed.items[next]);
                for (std::size_t f = 0; f < p.n_factors; f += kLine<Real>) {
                    __builtin_prefetch(row +
                                       static_cast<std::ptrdiff_t>(f) * p.items.factor_stride);
                }
            }
            const std::int32_t* const items = p.listed.items + j;
            if (n == 8) dot<S, 8>(user, p.n_factors, p.items, items, p.scores + j);
            if (n == 4) dot<S, 4>(user, p.n_factors, p.items, items, p.scores + j);
            if (n == 2) dot<S, 2>(user, p.n_factors, p.items, items, p.scores + j);
            if (n == 1) dot<S, 1>(user, p.n_factors, p.items, items, p.scores + j);
        }
    }
}

/// Read 4 values from each of 4 rows, starting at position `f`, and write them as 4 columns. The
/// stride of the output is kStride.
template <int kStride, class Real>
inline void transpose(const Real* const* rows, std::size_t f, Real* out) {
    using Quad [[gnu::vector_size(4 * sizeof(Real))]] = Real;
    Quad row[4];
    for (int i = 0; i < 4; ++i) std::memcpy(row + i, rows[i] + f, sizeof(Quad));
    const Quad low01 = __builtin_shufflevector(row[0], row[1], 0, 4, 1, 5);
    const Quad low23 = __builtin_shufflevector(row[2], row[3], 0, 4, 1, 5);
    const Quad high01 = __builtin_shufflevector(row[0], row[1], 2, 6, 3, 7);
    const Quad high23 = __builtin_shufflevector(row[2], row[3], 2, 6, 3, 7);
    const Quad columns[4] = {__builtin_shufflevector(low01, low23, 0, 1, 4, 5),
                             __builtin_shufflevector(low01, low23, 2, 3, 6, 7),
                             __builtin_shufflevector(high01, high23, 0, 1, 4, 5),
                             __builtin_shufflevector(high01, high23, 2, 3, 6, 7)};
    for (int i = 0; i < 4; ++i) std::memcpy(out + i * kStride, columns + i, sizeof(Quad));
}

/// Pack the items at places [from, to) into panels, each 2 vectors wide. A panel has a row of
/// biases (NaN for padding), then one row per factor.
template <class S>
void pack_items(const ItemFactors<typename S::Real>& items, const Falling& falling,
                std::size_t n_factors, std::int64_t from, std::int64_t to, std::int64_t padded_to,
                typename S::Real* out) {
    using Real = typename S::Real;
    constexpr int kPanel = 2 * S::kLanes;
    static const Real kZero[1] = {0};
    const Real* rows[kPanel];
    const Real* next[kPanel];  // the rows of the next panel
    const auto find_next = [&](std::int64_t first) {
        for (int i = 0; i < kPanel; ++i) {
            const std::int64_t place = first + i;
            next[i] = place < to ? factors_of(items, falling.item(place)) : kZero;
        }
    };
    find_next(from);
    for (std::int64_t first = from; first < padded_to; first += kPanel) {
        for (int i = 0; i < kPanel; ++i) rows[i] = next[i];
        find_next(first + kPanel);
        for (int i = 0; i < kPanel; ++i) {
            const std::int64_t place = first + i;
            out[i] = place < to ? bias_of(items, falling.item(place)) : not_a_number<Real>();
        }
        out += kPanel;
        std::size_t f = 0;
        if (items.factor_stride == 1 && first + kPanel <= to) {
            for (; f + 4 <= n_factors; f += 4, out += 4 * kPanel) {
                if (f % kLine<Real> == 0) {
                    for (int i = 0; i < kPanel; ++i) __builtin_prefetch(next[i] + f);
                }
                for (int i = 0; i < kPanel; i += 4) transpose<kPanel>(rows + i, f, out + i);
            }
        }
        for (; f < n_factors; ++f, out += kPanel) {
            for (int i = 0; i < kPanel; ++i) {
                const std::ptrdiff_t step = first + i < to ? items.factor_stride : 0;
                out[i] = rows[i][static_cast<std::ptrdiff_t>(f) * step];
            }
        }
    }
}

/// Compute a tile: the scores of kUsers users for 2 vectors of items.
/// @param panel see pack_items
/// @param users [n_factors][kUsers]
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

/// Pack users into groups of kUsers. Each group has the shape [n_factors][kUsers], and the last
/// group is padded with zeros.
/// @param which [n]: the rows of `users` to pack
template <class S>
void pack_users(const typename S::Real* users, std::size_t n_factors, const std::size_t* which,
                std::size_t n, typename S::Real* out) {
    using Real = typename S::Real;
    constexpr std::size_t kUsers = S::kUsers;
    for (std::size_t first = 0; first < n; first += kUsers, out += kUsers * n_factors) {
        for (std::size_t u = 0; u < kUsers; ++u) {
            const Real* in = first + u < n ? users + which[first + u] * n_factors : nullptr;
            for (std::size_t f = 0; f < n_factors; ++f) {
                out[f * kUsers + u] = in == nullptr ? Real{0} : in[f];
            }
        }
    }
}

/// Score the next n packed items for kUsers users. Returns the address just past these items.
/// @param out [kUsers][n]
template <class S>
const typename S::Real* score_chunk(const typename S::Real* panel, const typename S::Real* users,
                                    std::size_t n_factors, typename S::Real* out, std::int64_t n) {
    constexpr std::int64_t kPanel = 2 * S::kLanes;
    for (std::int64_t i = 0; i < n; i += kPanel) {
        score_tile<S>(panel, users, n_factors, out + i, n);
        panel += kPanel * static_cast<std::int64_t>(n_factors + 1);
    }
    return panel;
}

/// Copy a user's scores for items [from, to) into a chunk, which is padded with NaN.
/// @param columns see GivenScores
template <class S>
void read_chunk(const typename S::Real* in, const std::int64_t* columns, std::int64_t from,
                std::int64_t to, typename S::Real* out) {
    using Real = typename S::Real;
    if (columns == nullptr) {
        std::memcpy(out, in + from, static_cast<std::size_t>(to - from) * sizeof(Real));
    } else {
        for (std::int64_t i = from; i < to; ++i) out[i - from] = in[columns[i]];
    }
    for (std::int64_t i = to - from; i < kChunkVectors * S::kLanes; ++i) {
        out[i] = not_a_number<Real>();
    }
}

/// Flag scores that are not finite, and apply the NaN rule. If `minus_infinity_is_absent` is true,
/// items that score -inf are not candidates.
template <class Real>
void check_scores(Real* scores, std::int64_t n, NanRule rule, bool minus_infinity_is_absent,
                  std::uint32_t& flags, std::int64_t& absent) {
    // The scores are almost always finite, so this loop checks them without a branch per score.
    std::uint32_t not_finite = 0;
    for (std::int64_t i = 0; i < n; ++i) not_finite |= scores[i] - scores[i] == 0 ? 0u : 1u;
    if (not_finite == 0) return;
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

}  // namespace
}  // namespace recometer
