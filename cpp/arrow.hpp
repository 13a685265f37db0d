// Read columns from other libraries through the Arrow C stream interface.
//
// The structures are specified at https://arrow.apache.org/docs/format/CDataInterface.html and
// https://arrow.apache.org/docs/format/CStreamInterface.html.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

#include "strings.hpp"

namespace recometer {

struct ArrowSchema {
    const char* format;
    const char* name;
    const char* metadata;
    std::int64_t flags;
    std::int64_t n_children;
    ArrowSchema** children;
    ArrowSchema* dictionary;
    void (*release)(ArrowSchema*);
    void* private_data;
};

struct ArrowArray {
    std::int64_t length;
    std::int64_t null_count;
    std::int64_t offset;
    std::int64_t n_buffers;
    std::int64_t n_children;
    const void** buffers;
    ArrowArray** children;
    ArrowArray* dictionary;
    void (*release)(ArrowArray*);
    void* private_data;
};

struct ArrowArrayStream {
    int (*get_schema)(ArrowArrayStream*, ArrowSchema*);
    int (*get_next)(ArrowArrayStream*, ArrowArray*);
    const char* (*get_last_error)(ArrowArrayStream*);
    void (*release)(ArrowArrayStream*);
    void* private_data;
};

/// An Arrow structure that is released when it goes out of scope.
template <class T>
class Owned : public T {
 public:
    Owned() : T{} {}
    Owned(Owned&& other) noexcept : T(other) { other.release = nullptr; }
    Owned& operator=(Owned&&) = delete;
    ~Owned() {
        if (this->release != nullptr) this->release(this);
    }
};

/// The strings in an Arrow stream, which must not contain nulls.
class StringStream {
 public:
    /// @throws std::invalid_argument unless the stream is a column of string views without nulls
    explicit StringStream(ArrowArrayStream& stream) {
        Owned<ArrowSchema> schema;
        require(stream.get_schema(&stream, &schema) == 0, "the stream has no schema");
        require(std::strcmp(schema.format, "vu") == 0, "expected a column of string views");
        for (;;) {
            Owned<ArrowArray> array;
            require(stream.get_next(&stream, &array) == 0, "the stream cannot be read");
            if (array.release == nullptr) break;
            require(array.null_count <= 0, "the column contains nulls");
            chunks_.push_back(
                {static_cast<const unsigned char*>(array.buffers[1]) + 16 * array.offset,
                 static_cast<std::size_t>(array.length), array.buffers + 2});
            n_ += chunks_.back().n;
            arrays_.push_back(std::move(array));
        }
    }

    const std::vector<StringViews>& chunks() const { return chunks_; }
    std::size_t n() const { return n_; }

 private:
    static void require(bool holds, const char* message) {
        if (!holds) throw std::invalid_argument(message);
    }

    std::vector<Owned<ArrowArray>> arrays_;
    std::vector<StringViews> chunks_;
    std::size_t n_ = 0;
};

}  // namespace recometer
