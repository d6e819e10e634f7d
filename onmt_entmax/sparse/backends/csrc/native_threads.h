// Runs work on rows in several threads: those of PyTorch's OpenMP, or new ones. An ordinary header,
// which native.cpp and lstm.cpp include.

#pragma once

#include <dlfcn.h>

#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace {

// GCC's entry point to OpenMP, which every OpenMP runtime that PyTorch may have loaded offers. Its
// threads exist already; a second team would compete with them. If it is null, `run_parts` starts
// threads in each call.
typedef void Parallel(void (*body)(void *), void *data, unsigned threads, unsigned flags);
Parallel *openmp_parallel = nullptr;

// Each module calls this once, when Python loads it.
void find_openmp() { openmp_parallel = (Parallel *)dlsym(RTLD_DEFAULT, "GOMP_parallel"); }

// Returns how many parts rows are divided into: one for each thread, but so few that each has at
// least `work_of_a_thread` of the work.
long number_of_parts(long rows, long threads, double work, double work_of_a_thread) {
    long parts = (long)(work / work_of_a_thread);
    if (parts > threads) parts = threads;
    if (parts > rows) parts = rows;
    return parts < 1 ? 1 : parts;
}

// The parts of some work: those from `next` on have not been begun.
struct PartQueue {
    void (*run)(void *data, long part);
    void *data;
    long parts;
    std::atomic<long> next;
};

// Each thread runs this: it takes parts until none is left.
void run_from_queue(void *queue_of_parts) {
    PartQueue &queue = *(PartQueue *)queue_of_parts;
    for (long part; (part = queue.next++) < queue.parts;) queue.run(queue.data, part);
}

// Runs the parts 0, 1, ... of some work, in as many threads or fewer.
void run_parts(long parts, void (*run)(void *data, long part), void *data) {
    PartQueue queue = {run, data, parts, {0}};
    if (parts > 1 && openmp_parallel) {
        openmp_parallel(run_from_queue, &queue, (unsigned)parts, 0);
        return;
    }
    std::vector<std::thread> others;
    try {
        for (long part = 1; part < parts; ++part) others.emplace_back(run_from_queue, &queue);
    } catch (const std::system_error &) {  // no more threads can be started; fewer will do
    }
    run_from_queue(&queue);
    for (std::thread &other : others) other.join();
}

}  // namespace
