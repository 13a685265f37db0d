#include "background.hpp"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

#ifdef __GLIBC__
#include <pthread.h>
#include <sched.h>
#endif

namespace recometer {
namespace {

// `wait` polls for this long before it sleeps, because waking a sleeping thread can take about as
// long, especially on a virtual machine.
constexpr auto kAwake = std::chrono::milliseconds(1);

#ifdef __GLIBC__

struct Start {
    std::function<void()> work;
    cpu_set_t processors;
};

void* begin(void* argument) {
    const std::unique_ptr<Start> start(static_cast<Start*>(argument));
    sched_setaffinity(0, sizeof start->processors, &start->processors);
    start->work();
    return nullptr;
}

/// Start a thread on a processor other than the caller's. Returns whether the thread was started.
///
/// Linux may put a new thread on its creator's processor even if others are idle. The new thread
/// would then not run until its creator sleeps, often several milliseconds later.
bool start_elsewhere(const std::function<void()>& work) {
    auto start = std::make_unique<Start>();
    start->work = work;
    if (sched_getaffinity(0, sizeof start->processors, &start->processors) != 0) return false;
    cpu_set_t others = start->processors;
    const int own = sched_getcpu();
    if (own < 0 || own >= CPU_SETSIZE) return false;
    CPU_CLR(static_cast<std::size_t>(own), &others);
    if (CPU_COUNT(&others) == 0) return false;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) return false;
    pthread_t thread;
    const bool started = pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0 &&
                         pthread_attr_setaffinity_np(&attributes, sizeof others, &others) == 0 &&
                         pthread_create(&thread, &attributes, begin, start.get()) == 0;
    pthread_attr_destroy(&attributes);
    if (started) {
        [[maybe_unused]] auto* const left = start.release();  // the thread now owns it
    }
    return started;
}

#else

bool start_elsewhere(const std::function<void()>&) { return false; }

#endif

}  // namespace

void Background::add(std::function<void()> step) { state_->steps.push_back(std::move(step)); }

void Background::start(std::size_t n_threads) {
    n_threads = std::min(n_threads, state_->steps.size());
    state_->at_work = n_threads;
    for (std::size_t thread = 0; thread < n_threads; ++thread) {
        const auto work = [state = state_] { run(*state); };
        if (start_elsewhere(work)) continue;
        try {
            std::thread(work).detach();
        } catch (const std::system_error&) {
            work();
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
