// Common parts of the C++ extensions: memory, threads, and the processor's instruction set.
//
// A file NAME.cpp defines `Kernels`, a table of functions, and includes native_sets.h with
// ENTMAX_BODY set to a header. This header and those that it includes are compiled for three
// instruction sets, each in its own namespace, of which the processor's best runs. So they have no
// include guards: each is included in one place.

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define ENTMAX_SETS 1
#include <immintrin.h>
#endif

// Instruction sets; the numbers are those of `use_instruction_set`. While a header is compiled for
// one of them, ENTMAX_SET is its number, and TARGET the attribute of its functions.
#define ENTMAX_ANY_PROCESSOR 1
#define ENTMAX_AVX2 2
#define ENTMAX_AVX512 3

// Templates are instantiated at the end of the file, so each needs its own target attribute.
#define INLINE inline __attribute__((always_inline)) TARGET

namespace {

// Memory that is freed with a piece of work.
struct Memory {
    std::vector<void *> taken;

    void *take(size_t size) {
        taken.push_back(nullptr);
        void *memory = taken.back() = malloc(size);
        if (!memory) throw std::bad_alloc();
        return memory;
    }
    ~Memory() {
        for (void *memory : taken) free(memory);
    }
};

int instruction_set = ENTMAX_ANY_PROCESSOR;

int best_instruction_set() {
#ifdef ENTMAX_SETS
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi"))
        return ENTMAX_ANY_PROCESSOR;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        return ENTMAX_AVX512;
    if (__builtin_cpu_supports("avx2")) return ENTMAX_AVX2;
#endif
    return ENTMAX_ANY_PROCESSOR;
}

// GCC's entry point to OpenMP, which every runtime that PyTorch may have loaded offers. Its threads
// exist already; a second team would compete with them.
typedef void Parallel(void (*body)(void *), void *data, unsigned threads, unsigned flags);
Parallel *parallel = nullptr;

// How many parts rows are divided into: one for each thread, but none with less work than pays.
long parts_of(long rows, long threads, double work, double work_of_a_thread) {
    long parts = (long)(work / work_of_a_thread);
    if (parts > threads) parts = threads;
    if (parts > rows) parts = rows;
    return parts < 1 ? 1 : parts;
}

// Parts of some work, to be taken by any number of threads.
struct Shares {
    void (*take)(void *data, long part);
    void *data;
    long parts;
    std::atomic<long> next;
};

void take_parts(void *shares) {
    Shares &all = *(Shares *)shares;
    for (long part; (part = all.next++) < all.parts;) all.take(all.data, part);
}

// Run parts 0, 1, ... of some work, each in its own thread.
void share(long parts, void (*take)(void *data, long part), void *data) {
    Shares all = {take, data, parts, {0}};
    if (parts > 1 && parallel) {
        parallel(take_parts, &all, (unsigned)parts, 0);
        return;
    }
    std::vector<std::thread> others;
    try {
        for (long part = 1; part < parts; ++part) others.emplace_back(take_parts, &all);
    } catch (const std::system_error &) {  // no more threads: fewer will do
    }
    take_parts(&all);
    for (std::thread &other : others) other.join();
}

// Takes the number of an instruction set, by default of the best, and returns it.
PyObject *use_instruction_set(PyObject *, PyObject *arguments) {
    int wanted = 0;
    if (!PyArg_ParseTuple(arguments, "|i", &wanted)) return nullptr;
    const int best = best_instruction_set();
    if (wanted < 0 || wanted > best) {
        PyErr_Format(PyExc_ValueError, "this processor has instruction sets 1 to %d", best);
        return nullptr;
    }
    instruction_set = wanted ? wanted : best;
    return PyLong_FromLong(instruction_set);
}

// Initialise; called once by each module.
void begin() {
    instruction_set = best_instruction_set();
    parallel = (Parallel *)dlsym(RTLD_DEFAULT, "GOMP_parallel");
}

}  // namespace
