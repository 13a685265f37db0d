// Fast, non-cryptographic hash functions for 64-bit numbers and for sequences of bytes.
//
// This header requires neither Python nor a particular instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace recometer {

/// A bijective 64-bit mixing function: the output function of SplitMix64 (Steele, Lea & Flood, Fast
/// splittable pseudorandom number generators, OOPSLA 2014). recometer.draws.mix is the same
/// function in Python.
inline std::uint64_t mix(std::uint64_t bits) {
    bits += 0x9E3779B97F4A7C15u;
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9u;
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBu;
    return bits ^ (bits >> 31);
}

/// XXH64 with seed 0, as specified in
/// https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md.
std::uint64_t xxh64(const unsigned char* data, std::size_t n);

/// Hash data in pieces of `piece` bytes; the last piece may be shorter.
/// @param hashes [ceil(n / piece)]: output
void hash_pieces(const unsigned char* data, std::size_t n, std::size_t piece,
                 std::uint64_t* hashes);

}  // namespace recometer
