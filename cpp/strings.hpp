// Number strings in order of first appearance, which turns string ids into positions.
//
// This header depends on neither Python nor an instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace recometer {

/// Strings as Arrow views of 16 bytes each. The first 4 bytes are the length. If the string has at
/// most 12 bytes, the string itself follows, padded with zeros. For a longer string, its first 4
/// bytes, the index of a buffer, and the string's offset in this buffer follow.
struct StringViews {
    const unsigned char* views;
    std::size_t n;
    const void* const* buffers;
};

/// Number strings in order of first appearance, from 0 on.
/// @param numbers [n of all chunks], output
/// @param rows [n of all chunks]: output, the row in which each number first appears
/// @returns the number of distinct strings
std::size_t number_strings(const std::vector<StringViews>& chunks, std::uint32_t* numbers,
                           std::int64_t* rows);

}  // namespace recometer
