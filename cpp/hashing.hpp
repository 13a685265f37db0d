// Hashes that are fast and not cryptographic: of 64 bits, and of data cut into pieces.
//
// This header knows neither Python nor an instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace recometer {

/// Scramble 64 bits, one to one: the output function of SplitMix64 (Steele, Lea & Flood, Fast
/// splittable pseudorandom number generators, OOPSLA 2014). Python's twin is recometer.draws.mix.
inline std::uint64_t mix(std::uint64_t bits) {
    bits += 0x9E3779B97F4A7C15u;
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9u;
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBu;
    return bits ^ (bits >> 31);
}

/// XXH64 with seed 0 of some bytes; the algorithm is that of
/// https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md.
std::uint64_t xxh64(const unsigned char* data, std::size_t n);

/// Hash pieces of `piece` bytes one by one; the last may be shorter.
/// @param hashes [ceil(n / piece)], written
void hash_pieces(const unsigned char* data, std::size_t n, std::size_t piece,
                 std::uint64_t* hashes);

}  // namespace recometer
