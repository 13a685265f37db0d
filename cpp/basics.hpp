// Helpers for the kernel's source files: aligned memory, special floating-point values and a
// binary search.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace recometer {
namespace {

/// Uninitialised memory, aligned to a cache line. The kernel does not use std::vector, because the
/// linker could share its functions between files that are compiled for different instruction sets.
template <class T>
class Buffer {
 public:
    explicit Buffer(std::size_t size) {
        // std::aligned_alloc does not exist on Windows.
        allocated_ = std::malloc(size * sizeof(T) + 2 * kBoundary);
        if (allocated_ == nullptr) throw std::bad_alloc();
        const auto address = reinterpret_cast<std::uintptr_t>(allocated_);
        data_ = reinterpret_cast<T*>((address + kBoundary - 1) / kBoundary * kBoundary);
    }
    ~Buffer() { std::free(allocated_); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    T* get() const { return data_; }
    template <class Index>
    T& operator[](Index i) const {
        return data_[i];
    }

 private:
    static constexpr std::size_t kBoundary = 64;

    void* allocated_;
    T* data_;
};

/// A NaN with its sign bit set, which a descent by signs treats as below every threshold (see
/// descent.hpp).
template <class Real>
inline Real not_a_number() {
    return static_cast<Real>(-__builtin_nan(""));
}

template <class Real>
inline Real infinity() {
    return static_cast<Real>(__builtin_inf());
}

/// Return the position of the first item in items[from..to) that is at least `item`, or `to` if
/// there is none. The items must be in ascending order.
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
