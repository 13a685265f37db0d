// Run work in the background while the caller does something else.
//
// This header requires neither Python nor a particular instruction set.
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

/// Runs steps on its own threads, without holding Python's global interpreter lock.
class Background {
 public:
    /// Add a step. Call this before `start`. Steps start in the order in which they were added, and
    /// overlap if there are several threads. A step's inputs and outputs must stay valid until the
    /// step has ended.
    void add(std::function<void()> step);

    /// Start running the steps on at most `n_threads` threads. If no thread can be created, all
    /// steps run before this function returns.
    void start(std::size_t n_threads);

    /// Wait at most `seconds` for the steps to end. Returns whether all steps have ended.
    /// @throws the first exception thrown by a step
    bool wait(double seconds);

    /// Skip the steps that have not started, and wait until the running steps have ended.
    void stop();

    /// Whether all threads have finished.
    bool ended() const { return state_->at_work.load(std::memory_order_acquire) == 0; }

 private:
    /// The state shared with the threads. The threads may outlive this object, because its
    /// destructor does not wait for them. If it did, it would wait forever in the child process
    /// after a fork, where the threads do not exist.
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
