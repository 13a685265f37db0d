// Strings, numbered by first sight: what makes positions of ids that are texts.
//
// This header knows neither Python nor an instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace recometer {

/// Strings as Arrow's views, 16 bytes each: the length in 4, then, of up to 12 bytes, the string
/// itself padded with zeros; of more, its first 4 bytes, the number of a buffer, and where the
/// string begins in it.
struct StringViews {
    const unsigned char* views;
    std::size_t n;
    const void* const* buffers;
};

/// Number strings by first sight: equal ones have the same number, the first of all has 0.
/// @param numbers [n of all chunks], written
/// @param rows [n of all chunks]; of each number the row where it was first seen is written
/// @returns how many numbers there are
std::size_t number_strings(const std::vector<StringViews>& chunks, std::uint32_t* numbers,
                           std::int64_t* rows);

}  // namespace recometer
