// Bindings for steps that run in the background while Python does something else.
#include "../background.hpp"

#include <memory>
#include <vector>

#include "../hashing.hpp"
#include "../popularity.hpp"
#include "arrays.hpp"

namespace recometer {
namespace {

/// Steps that run in the background, with references to the arrays that they use.
class HeldBackground {
 public:
    HeldBackground() = default;
    ~HeldBackground() {
        // Threads that are still running need the arrays, so leak the arrays deliberately.
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
        hold(data, hashes);
    }

    void count_items(const In1<std::int64_t>& indptr, const In1<std::int32_t>& items,
                     const std::optional<In1<std::int64_t>>& users,
                     const Out1<std::int64_t>& counts, const Out1<std::int64_t>& sums) {
        const Ragged rows = table(indptr, items);
        const TableUsers places = table_users(sums.shape(0), users, indptr);
        const Popularity output{counts.shape(0), counts.data(), sums.data()};
        add([rows, n_rows = items.shape(0), places, output] {
            recometer::count_items(rows, n_rows, places, output);
        });
        hold(indptr, items, users, counts, sums);
    }

    void start(std::size_t threads) {
        require(!started_, "the steps have already been started");
        require(threads > 0, "n_threads must be at least 1");
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
        require(!started_, "the steps have already been started");
        background_.add(step);
    }

    template <class... Arrays>
    void hold(const Arrays&... arrays) {
        (held_->push_back(std::make_shared<Arrays>(arrays)), ...);
    }

    Background background_;
    std::unique_ptr<std::vector<std::shared_ptr<void>>> held_ =
        std::make_unique<std::vector<std::shared_ptr<void>>>();
    bool started_ = false;
};

}  // namespace

void bind_background(nb::module_& m) {
    nb::class_<HeldBackground>(m, "Background",
                               "Runs steps on threads that do not hold Python's interpreter lock.")
        .def(nb::init<>())
        .def("hash_pieces", &HeldBackground::hash_pieces, exact("data"), nb::arg("piece"),
             exact("hashes"), "Add a call to the function of the same name as a step.")
        .def("count_items", &HeldBackground::count_items, nb::kw_only(), exact("indptr"),
             exact("items"), exact_or_none("users"), exact("counts"), exact("sums"),
             "Add a call to the function of the same name as a step.")
        .def("start", &HeldBackground::start, nb::arg("threads"), "Start the steps.")
        .def("wait", &HeldBackground::wait, nb::arg("seconds"),
             "Wait at most this many seconds. Return whether all steps have ended.")
        .def("stop", &HeldBackground::stop,
             "Skip the steps that have not started, and wait for the others.");
}

}  // namespace recometer
