// Common parts of the C++ extensions: the processor, threads, and the parameters of entmax.
//
// A file NAME.cpp defines `Kernels`, a table of functions, and includes native_sets.h with
// ENTMAX_BODY set to a header. The header is compiled for three instruction sets, each in its own
// namespace, of which the processor's best runs.

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

// Templates are instantiated at the end of the file, so each needs its own target attribute.
#define INLINE inline __attribute__((always_inline)) TARGET

namespace {

struct Curve {
    double alpha, beta, order, level;  // order = 1 / beta, level = beta ** (order + 1)
    double wanted;                     // norm of the margins at the threshold
    double least;                      // margins up to this are rounding of the threshold
    int whole;                         // the order if it is a whole number, else -1

    static Curve of(double alpha, int whole) {
        const double beta = alpha - 1, order = whole > 0 ? whole : 1 / beta;
        return {alpha, beta, order, pow(beta, order + 1), order, 0x1p-48 * order, whole};
    }

    // The order is whole up to the rounding of alpha; up to 10, products are cheaper than a power.
    static Curve of(double alpha) {
        const double order = 1 / (alpha - 1), whole = nearbyint(order);
        const bool exact = fabs(order - whole) <= 3e-16 * whole * whole;
        return of(alpha, exact && whole >= 1 && whole <= 10 ? (int)whole : -1);
    }

    // The same with a whole order, which needs products only. Margins are at most the norm wanted,
    // so a higher order makes norms smaller and thresholds lower.
    Curve bounding() const {
        Curve curve = *this;
        if (whole < 0) curve.order = curve.whole = (int)ceil(order);
        return curve;
    }

    double norm(double total) const {
        return order == 1 ? total : order == 2 ? sqrt(total) : pow(total, 1 / order);
    }
};

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

// GCC's entry point to OpenMP, which every runtime that PyTorch may have loaded offers. Its threads
// exist already; a second team would compete with them.
typedef void Parallel(void (*body)(void *), void *data, unsigned threads, unsigned flags);
Parallel *parallel = nullptr;

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
