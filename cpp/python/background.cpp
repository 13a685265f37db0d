// Steps of the kernel that are taken while Python does something else.
#include "../background.hpp"

#include <memory>
#include <vector>

#include "../hashing.hpp"
#include "../lists.hpp"
#include "arrays.hpp"

namespace recometer {
namespace {

/// Steps, and the arrays that they read and write.
class HeldBackground {
 public:
    HeldBackground() = default;
    ~HeldBackground() {
        // Threads that are still at work need the arrays: then these stay where they are.
        if (!background_.ended()) {
            [[maybe_unused]] auto* const left = held_.release();
        }
    }
    HeldBackground(const HeldBackground&) = delete;
    HeldBackground& operator=(const HeldBackground&) = delete;

    void hash_pieces(const In1<std::uint8_t>& data, std::size_t piece,
                     const Out1<std::uint64_t>& hashes) {
        require_hashes(data, piece, hashes);
        add([from = data.data(), n = data.shape(0), piece, to = hashes.data()] {
            recometer::hash_pieces(from, n, piece, to);
        });
        hold(data), hold(hashes);
    }

    void count_items(const In1<std::int64_t>& indptr, const In1<std::int32_t>& items,
                     const std::optional<In1<std::int64_t>>& users,
                     const Out1<std::int64_t>& counts, const Out1<std::int64_t>& sums) {
        const Ragged rows = table(indptr, items);
        const TableUsers places = table_users(sums.shape(0), users, indptr);
        add([rows, places, n = items.shape(0), n_items = counts.shape(0), number = counts.data(),
             sum = sums.data()] {
            if (!count_rows(rows.items, n, n_items, number)) {
                throw std::invalid_argument("no such item");
            }
            sum_rows(rows, places, number, n_items, sum);
        });
        hold(indptr), hold(items), hold(users), hold(counts), hold(sums);
    }

    void start(std::size_t threads) {
        require(!started_, "the steps have begun");
        require(threads > 0, "no threads");
        started_ = true;
        nb::gil_scoped_release release;
        background_.start(threads);
    }

    bool wait(double seconds) {
        nb::gil_scoped_release release;
        return background_.wait(seconds);
    }

    void stop() {
        nb::gil_scoped_release release;
        background_.stop();
    }

 private:
    template <class Step>
    void add(Step step) {
        require(!started_, "the steps have begun");
        background_.add(step);
    }

    template <class Array>
    void hold(const Array& array) {
        held_->push_back(std::make_shared<Array>(array));
    }

    Background background_;
    std::unique_ptr<std::vector<std::shared_ptr<void>>> held_ =
        std::make_unique<std::vector<std::shared_ptr<void>>>();
    bool started_ = false;
};

}  // namespace

void bind_background(nb::module_& m) {
    nb::class_<HeldBackground>(m, "Background",
                               "Steps that are taken on other threads, without Python's lock.")
        .def(nb::init<>())
        .def("hash_pieces", &HeldBackground::hash_pieces, exact("data"), nb::arg("piece"),
             exact("hashes"), "Do what the function of this name does.")
        .def("count_items", &HeldBackground::count_items, nb::kw_only(), exact("indptr"),
             exact("items"), exact_or_none("users"), exact("counts"), exact("sums"),
             "Count each item, and add these counts up over each user's items.")
        .def("start", &HeldBackground::start, nb::arg("threads"), "Begin.")
        .def("wait", &HeldBackground::wait, nb::arg("seconds"),
             "Wait some seconds at most; return whether all steps have ended.")
        .def("stop", &HeldBackground::stop, "Leave out what has not begun, and wait for the rest.");
}

}  // namespace recometer
