// Bindings for steps that run in the background while Python does something else.
#include "../background.hpp"

#include <functional>
#include <memory>
#include <vector>

#include "../hashing.hpp"
#include "arrays.hpp"
#include "popularity.hpp"

namespace recometer {
namespace {

/// Steps that run in the background, with references to the arrays that they use.
class HeldBackground {
 public:
    HeldBackground() = default;
    ~HeldBackground() {
        // Threads that are still running need the arrays, so the arrays are never freed in this
        // case.
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

    void count_items(const Column& indptr, const In1<std::int32_t>& items,
                     const std::optional<Column>& users, const Out1<std::int64_t>& counts,
                     const Out1<std::int64_t>& sums, const Out1<std::int8_t>& band,
                     const Out2<std::int64_t>& ranges) {
        const Ragged rows = table(indptr, items);
        const TableUsers places = table_users(sums.shape(0), users, indptr);
        const Popularity output = popularity(counts, sums, band, ranges);
        add_in_order([rows, n_rows = items.shape(0), places, output] {
            recometer::count_items(rows, n_rows, places, output);
        });
        hold(indptr, items, users, counts, sums, band, ranges);
    }

    void count_in_bands(const Column& indptr, const Column& item, const In1<bool>& counted,
                        const Column& above, const Column& tied, std::size_t n_items,
                        const Column& banded, const In1<std::int8_t>& band, std::int64_t cutoff,
                        const Out2<std::int32_t>& counts, const Out2<float>& within) {
        const BandedRows rows =
            banded_rows(indptr, item, counted, above, tied, n_items, banded, band, counts, within);
        add_in_order([rows, cutoff, to = counts.data(), share = within.data()] {
            recometer::count_in_bands(rows, cutoff, to, share);
        });
        hold(indptr, item, counted, above, tied, banded, band, counts, within);
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

    /// Add a step that starts when the previous step added by this function has ended.
    template <class Step>
    void add_in_order(Step step) {
        require(!started_, "the steps have begun");
        if (!in_order_) {
            in_order_ = std::make_shared<std::vector<std::function<void()>>>();
            background_.add([steps = in_order_] {
                for (const auto& step : *steps) step();
            });
        }
        in_order_->push_back(step);
    }

    template <class... Arrays>
    void hold(const Arrays&... arrays) {
        (held_->push_back(std::make_shared<Arrays>(arrays)), ...);
    }

    Background background_;
    std::unique_ptr<std::vector<std::shared_ptr<void>>> held_ =
        std::make_unique<std::vector<std::shared_ptr<void>>>();
    std::shared_ptr<std::vector<std::function<void()>>> in_order_;
    bool started_ = false;
};

}  // namespace

void bind_background(nb::module_& m) {
    nb::class_<HeldBackground>(m, "Background",
                               "Runs steps on other threads, without Python's lock.")
        .def(nb::init<>())
        .def("hash_pieces", &HeldBackground::hash_pieces, exact("data"), nb::arg("piece"),
             exact("hashes"), "Add a call to the function of the same name as a step.")
        .def("count_items", &HeldBackground::count_items, nb::kw_only(), exact("indptr"),
             exact("items"), exact_or_none("users"), exact("counts"), exact("sums"), exact("band"),
             exact("ranges"), "Add a call to the function of the same name as a step.")
        .def("count_in_bands", &HeldBackground::count_in_bands, nb::kw_only(), exact("indptr"),
             exact("item"), exact("counted"), exact("above"), exact("tied"), nb::arg("n_items"),
             exact("banded"), exact("band"), nb::arg("cutoff"), exact("counts"), exact("within"),
             "Add a call to the function of the same name, after earlier steps.")
        .def("start", &HeldBackground::start, nb::arg("threads"), "Start the steps.")
        .def("wait", &HeldBackground::wait, nb::arg("seconds"),
             "Wait at most this many seconds. Return whether all steps have ended.")
        .def("stop", &HeldBackground::stop,
             "Skip the steps that have not started, and wait for the others.");
}

}  // namespace recometer
