#include "background.hpp"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

namespace recometer {
namespace {

// A thread that sleeps may take as long to wake up, above all on a virtual machine.
constexpr auto kAwake = std::chrono::milliseconds(1);

}  // namespace

void Background::add(std::function<void()> step) { state_->steps.push_back(std::move(step)); }

void Background::start(std::size_t n_threads) {
    n_threads = std::min(n_threads, state_->steps.size());
    state_->at_work = n_threads;
    for (std::size_t thread = 0; thread < n_threads; ++thread) {
        try {
            std::thread([state = state_] { run(*state); }).detach();
        } catch (const std::system_error&) {
            run(*state_);
        }
    }
}

void Background::run(State& state) {
    std::exception_ptr error;
    try {
        for (std::size_t step; !state.stopped && (step = state.next++) < state.steps.size();) {
            state.steps[step]();
        }
    } catch (...) {
        error = std::current_exception();
    }
    const std::lock_guard<std::mutex> lock(state.mutex);
    if (error && !state.error) state.error = error;
    if (--state.at_work == 0) state.end.notify_all();
}

bool Background::wait(double seconds) {
    const auto begin = std::chrono::steady_clock::now();
    while (!ended() && std::chrono::steady_clock::now() - begin < kAwake) {
        std::this_thread::yield();
    }
    std::unique_lock<std::mutex> lock(state_->mutex);
    const bool end = state_->end.wait_for(lock, std::chrono::duration<double>(seconds),
                                          [this] { return ended(); });
    if (end && state_->error) std::rethrow_exception(state_->error);
    return end;
}

void Background::stop() {
    state_->stopped = true;
    std::unique_lock<std::mutex> lock(state_->mutex);
    state_->end.wait(lock, [this] { return ended(); });
}

}  // namespace recometer
