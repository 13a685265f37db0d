// XXH64, a fast hash that is not cryptographic, of data cut into pieces.
//
// The algorithm is that of https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md.
//
// This header knows neither Python nor an instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace recometer {

/// XXH64 with seed 0 of some bytes.
std::uint64_t xxh64(const unsigned char* data, std::size_t n);

/// Hash pieces of `piece` bytes one by one; the last may be shorter.
/// @param hashes [ceil(n / piece)], written
void hash_pieces(const unsigned char* data, std::size_t n, std::size_t piece,
                 std::uint64_t* hashes);

}  // namespace recometer
