// What the files of the kernel share: memory, numbers, a search.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace recometer {
namespace {

/// Memory on a cache line's boundary, not initialised. (A std::vector's functions would be shared
/// between the instruction sets.)
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

/// Its sign is set: a descent by signs takes it for below (see descent.hpp).
template <class Real>
inline Real not_a_number() {
    return static_cast<Real>(-__builtin_nan(""));
}

template <class Real>
inline Real infinity() {
    return static_cast<Real>(__builtin_inf());
}

/// The first of the ascending items[from..to) that is not below `item`.
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

}  // namespace
}  // namespace recometer
