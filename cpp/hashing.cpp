#include "hashing.hpp"

#include <algorithm>

namespace recometer {
namespace {

constexpr std::uint64_t kPrime1 = 0x9E3779B185EBCA87U;
constexpr std::uint64_t kPrime2 = 0xC2B2AE3D27D4EB4FU;
constexpr std::uint64_t kPrime3 = 0x165667B19E3779F9U;
constexpr std::uint64_t kPrime4 = 0x85EBCA77C2B2AE63U;
constexpr std::uint64_t kPrime5 = 0x27D4EB2F165667C5U;

std::uint64_t rotate(std::uint64_t x, int bits) { return (x << bits) | (x >> (64 - bits)); }

/// Read a little-endian integer, regardless of the processor's byte order. Compilers turn this
/// function into a single load.
template <int kBytes>
std::uint64_t read(const unsigned char* data) {
    std::uint64_t value = 0;
    for (int i = 0; i < kBytes; ++i) value |= static_cast<std::uint64_t>(data[i]) << (8 * i);
    return value;
}

std::uint64_t round(std::uint64_t lane, std::uint64_t input) {
    return rotate(lane + input * kPrime2, 31) * kPrime1;
}

std::uint64_t merge(std::uint64_t hash, std::uint64_t lane) {
    return (hash ^ round(0, lane)) * kPrime1 + kPrime4;
}

}  // namespace

std::uint64_t xxh64(const unsigned char* data, std::size_t n) {
    const unsigned char* const end = data + n;
    std::uint64_t hash = kPrime5;
    if (n >= 32) {
        std::uint64_t a = kPrime1 + kPrime2, b = kPrime2, c = 0, d = 0 - kPrime1;
        for (; end - data >= 32; data += 32) {
            a = round(a, read<8>(data));
            b = round(b, read<8>(data + 8));
            c = round(c, read<8>(data + 16));
            d = round(d, read<8>(data + 24));
        }
        hash = rotate(a, 1) + rotate(b, 7) + rotate(c, 12) + rotate(d, 18);
        for (const std::uint64_t lane : {a, b, c, d}) hash = merge(hash, lane);
    }
    hash += n;
    for (; end - data >= 8; data += 8) {
        hash = rotate(hash ^ round(0, read<8>(data)), 27) * kPrime1 + kPrime4;
    }
    if (end - data >= 4) {
        hash = rotate(hash ^ (read<4>(data) * kPrime1), 23) * kPrime2 + kPrime3;
        data += 4;
    }
    for (; data < end; ++data) hash = rotate(hash ^ (*data * kPrime5), 11) * kPrime1;
    hash = (hash ^ (hash >> 33)) * kPrime2;
    hash = (hash ^ (hash >> 29)) * kPrime3;
    return hash ^ (hash >> 32);
}

void hash_pieces(const unsigned char* data, std::size_t n, std::size_t piece,
                 std::uint64_t* hashes) {
    for (std::size_t begin = 0; begin < n; begin += piece) {
        *hashes++ = xxh64(data + begin, std::min(piece, n - begin));
    }
}

}  // namespace recometer
