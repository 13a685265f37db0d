// What does not depend on an instruction set: which ones can run here, and sorting.
#include <algorithm>

#include "kernel_table.hpp"

namespace recometer {

std::vector<const InstructionSet*> instruction_sets() {
    std::vector<const InstructionSet*> sets;
#if defined(RECOMETER_X86)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        sets.push_back(&kAvx512);
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) sets.push_back(&kAvx2);
#endif
    sets.push_back(&kPlain);
    return sets;
}

template <class Real>
void sort_judged(const Ragged& judged, std::size_t n_users, const Real* scores, std::int64_t* order,
                 std::int64_t* order_end) {
    for (std::size_t u = 0; u < n_users; ++u) {
        std::int64_t* const begin = order + judged.indptr[u];
        std::int64_t* end = begin;
        for (std::int64_t j = judged.indptr[u]; j < judged.indptr[u + 1]; ++j) {
            if (scores[j] == scores[j]) *end++ = j;
        }
        // Within a user, the order of positions is the order of items.
        std::sort(begin, end, [scores](std::int64_t a, std::int64_t b) {
            return scores[a] < scores[b] || (scores[a] == scores[b] && a < b);
        });
        order_end[u] = end - order;
    }
}

template void sort_judged(const Ragged&, std::size_t, const float*, std::int64_t*, std::int64_t*);
template void sort_judged(const Ragged&, std::size_t, const double*, std::int64_t*, std::int64_t*);

void best_first(const std::int64_t* indptr, std::size_t n_users, const std::int64_t* above,
                const std::int64_t* before, std::int64_t* order) {
    for (std::size_t u = 0; u < n_users; ++u) {
        for (std::int64_t j = indptr[u]; j < indptr[u + 1]; ++j) order[j] = j;
        std::sort(order + indptr[u], order + indptr[u + 1], [=](std::int64_t a, std::int64_t b) {
            // Unsigned, -1 is the largest.
            const auto above_a = static_cast<std::uint64_t>(above[a]);
            const auto above_b = static_cast<std::uint64_t>(above[b]);
            if (above_a != above_b) return above_a < above_b;
            return before && before[a] != before[b] ? before[a] < before[b] : a < b;
        });
    }
}

}  // namespace recometer
