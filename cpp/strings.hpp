// Number strings in order of first appearance. This turns string ids into positions.
//
// This header requires neither Python nor a particular instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace recometer {

/// Strings as Arrow views of 16 bytes each. The first 4 bytes of a view are the length of the
/// string. A string of at most 12 bytes follows directly, padded with zeros. For a longer string,
/// what follows is the string's first 4 bytes, the index of a buffer, and the string's offset in
/// this buffer.
struct StringViews {
    const unsigned char* views;
    std::size_t n;
    const void* const* buffers;
};

/// Number strings in order of first appearance, starting at 0.
/// @param numbers [total n of the chunks]: output, the number of each string
/// @param rows [total n of the chunks]: output, the row in which each number first appears
/// @returns the number of distinct strings
std::size_t number_strings(const std::vector<StringViews>& chunks, std::uint32_t* numbers,
                           std::int64_t* rows);

}  // namespace recometer
