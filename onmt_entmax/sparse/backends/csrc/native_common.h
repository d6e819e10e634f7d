// What native code of this package begins with: the processor, threads, and curves of entmax.
//
// A file NAME.cpp defines `Kernels`, a table of functions, and includes native_sets.h with
// ENTMAX_BODY set to a header; that is compiled for three instruction sets, each in a namespace of
// its own, and the processor decides which one runs.

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

// Templates are compiled where the file ends, so each says itself what it is compiled for.
#define INLINE inline __attribute__((always_inline)) TARGET

namespace {

struct Curve {
    double alpha, beta, order, level;  // order = 1 / beta, level = beta ** (order + 1)
    double wanted;                     // the norm of the margins at the threshold
    int whole;                         // the order if it is a whole number, otherwise -1

    static Curve of(double alpha, int whole) {
        const double beta = alpha - 1, order = whole > 0 ? whole : 1 / beta;
        return {alpha, beta, order, pow(beta, order + 1), order, whole};
    }

    // The same with a whole order. Margins are at most the norm wanted, so that norms are smaller
    // and thresholds lower, and no powers are needed.
    Curve bounding() const {
        Curve curve = *this;
        if (whole < 0) curve.order = curve.whole = (int)ceil(order);
        return curve;
    }

    double norm(double total) const {
        return order == 1 ? total : order == 2 ? sqrt(total) : pow(total, 1 / order);
    }
};

// Memory that lives as long as a piece of work.
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

int instruction_set = 1;

int best_instruction_set() {
#ifdef ENTMAX_SETS
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        return 3;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 2;
#endif
    return 1;
}

// How GCC's programs start a team of OpenMP. PyTorch has loaded a runtime that knows it, whichever
// that is; its threads wait for work already, and a second team beside it would be in its way.
typedef void Parallel(void (*body)(void *), void *data, unsigned threads, unsigned flags);
Parallel *parallel = nullptr;

// The parts of some work, to be taken by any number of threads.
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

// Parts 0, 1, ... of some work, each in a thread of its own.
void share(long parts, void (*take)(void *data, long part), void *data) {
    Shares all = {take, data, parts, {0}};
    if (parts > 1 && parallel) {
        parallel(take_parts, &all, (unsigned)parts, 0);
        return;
    }
    std::vector<std::thread> others;
    try {
        for (long part = 1; part < parts; ++part) others.emplace_back(take_parts, &all);
    } catch (const std::system_error &) {  // no more threads to be had: fewer will do
    }
    take_parts(&all);
    for (std::thread &other : others) other.join();
}

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

// To be called once, when a module begins.
void begin() {
    instruction_set = best_instruction_set();
    parallel = (Parallel *)dlsym(RTLD_DEFAULT, "GOMP_parallel");
}

}  // namespace
