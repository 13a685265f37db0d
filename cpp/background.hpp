// Work that goes on while the caller does something else.
//
// This header knows neither Python nor an instruction set.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace recometer {

/// Takes steps on threads of its own, which need no lock of an interpreter.
class Background {
 public:
    /// Add a step before the start. Steps begin in this order; with several threads one may begin
    /// before the one before has ended. What a step reads and writes must live until the end.
    void add(std::function<void()> step);

    /// Begin; where no thread can be made, all is done before this returns.
    void start(std::size_t n_threads);

    /// Wait for the end, for some seconds at most; whether it has come.
    /// @throws what a step threw first
    bool wait(double seconds);

    /// Leave out what has not begun, and wait for the rest.
    void stop();

    /// Whether no thread is at work.
    bool ended() const { return state_->at_work.load(std::memory_order_acquire) == 0; }

 private:
    /// What the threads share with this object, which they may outlive: after a fork there are
    /// none, and nobody waits for them.
    struct State {
        std::vector<std::function<void()>> steps;
        std::atomic<std::size_t> next{0}, at_work{0};
        std::atomic<bool> stopped{false};
        std::mutex mutex;
        std::condition_variable end;
        std::exception_ptr error;
    };
    static void run(State& state);

    std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace recometer
