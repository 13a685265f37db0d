#include "strings.hpp"

#include <algorithm>
#include <cstring>

#include "hashing.hpp"

namespace recometer {
namespace {

constexpr std::uint32_t kInline = 12;  // the maximum length of a string that is stored in its view
constexpr std::uint32_t kNobody = 0xFFFFFFFFu;
constexpr std::size_t kBatch = 32;  // the number of strings whose memory is prefetched together

template <class T>
T read(const unsigned char* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

/// The key of a string. The key of a short string contains its bytes, padded with zeros. The key of
/// a longer string contains its hash and its address.
struct Key {
    std::uint64_t low, high;
    std::uint32_t length;
    std::uint32_t number = kNobody;

    Key() = default;
    Key(const unsigned char* view, const void* const* buffers) : length(read<std::uint32_t>(view)) {
        if (length <= kInline) {
            low = read<std::uint64_t>(view + 4);
            high = read<std::uint32_t>(view + 12);
        } else {
            const auto* const buffer =
                static_cast<const unsigned char*>(buffers[read<std::uint32_t>(view + 8)]);
            low = 0;  // set by finish()
            high = reinterpret_cast<std::uintptr_t>(buffer + read<std::uint32_t>(view + 12));
            __builtin_prefetch(text());
        }
    }

    /// Compute the hash of a long string. Call this before the key is used, but late enough for the
    /// prefetched `text()` to be in the cache.
    void finish() {
        if (length > kInline) low = xxh64(text(), length);
    }

    const unsigned char* text() const { return reinterpret_cast<const unsigned char*>(high); }

    bool operator==(const Key& other) const {
        if (length != other.length || low != other.low) return false;
        if (length <= kInline || high == other.high) return high == other.high;
        return std::memcmp(text(), other.text(), length) == 0;
    }

    std::uint64_t hash() const {
        if (length > kInline) return low;
        const std::uint64_t mixed = (low + length) * 0x9E3779B97F4A7C15u;
        return (mixed ^ (mixed >> 32) ^ high) * 0xBF58476D1CE4E5B9u;
    }
};

/// A hash table with open addressing; at most half of the slots are used.
class Table {
 public:
    Table() { resize(10); }

    const Key* place(const Key& key) const { return &slots[slot(key)]; }

    /// Return the number of a key. A new key gets the number `next`.
    std::uint32_t number(const Key& key, std::uint32_t next) {
        for (std::size_t at = slot(key);; at = (at + 1) & (slots.size() - 1)) {
            Key& entry = slots[at];
            if (entry.number == kNobody) {
                entry = key;
                entry.number = next;
                if (2 * (std::size_t{next} + 1) > slots.size()) resize(65 - shift);
                return next;
            }
            if (entry == key) return entry.number;
        }
    }

 private:
    std::size_t slot(const Key& key) const { return key.hash() >> shift; }

    void resize(int bits) {
        std::vector<Key> old(std::size_t{1} << bits);
        old.swap(slots);
        shift = 64 - bits;
        for (const Key& key : old) {
            if (key.number != kNobody) number(key, key.number);
        }
    }

    std::vector<Key> slots;
    int shift;
};

}  // namespace

std::size_t number_strings(const std::vector<StringViews>& chunks, std::uint32_t* numbers,
                           std::int64_t* rows) {
    Table table;
    std::uint32_t next = 0;
    std::int64_t row = 0;
    Key keys[kBatch];
    for (const StringViews& chunk : chunks) {
        for (std::size_t begin = 0; begin < chunk.n; begin += kBatch) {
            const std::size_t n = std::min(kBatch, chunk.n - begin);
            for (std::size_t i = 0; i < n; ++i) {
                keys[i] = Key(chunk.views + 16 * (begin + i), chunk.buffers);
            }
            for (std::size_t i = 0; i < n; ++i) {
                keys[i].finish();
                __builtin_prefetch(table.place(keys[i]));
            }
            for (std::size_t i = 0; i < n; ++i, ++row) {
                numbers[row] = table.number(keys[i], next);
                if (numbers[row] == next) rows[next++] = row;
            }
        }
    }
    return next;
}

}  // namespace recometer
