// Entmax on the CPU in native code: what native.py calls where this module was built.
//
// Each function takes addresses of contiguous memory, which its Python side has checked, and gives
// the rows to a few threads with the interpreter's lock released. native_threshold.h has the
// mathematics, native_rows.h what is made of it; both are compiled for three instruction sets here,
// and the processor decides which one runs.

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

// Fewer scores than these are not worth a thread.
const long SCORES_OF_A_THREAD = 1 << 17;

struct Curve {
    double alpha, beta, order, level;  // order = 1 / beta, level = beta ** (order + 1)
    double wanted;                     // the norm of the margins at the threshold
    int whole;                         // the order if it is a whole number, otherwise -1

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

struct Work {
    const void *scores;    // (rows, n); of the gradient the probabilities
    const void *incoming;  // (rows, n)
    const void *factor;    // (rows,) or null
    void *out;             // (rows, n)
    void *excess, *maxima;  // (rows,)
    double *threshold;     // (rows,)
    uint8_t *dense;        // (rows,)
    long rows, n;
    long most;  // entries of a row; with more it is dense
    Curve curve;
    bool logs;
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

// What one thread finds in its rows.
struct Piece {
    Memory memory;
    int64_t *position = nullptr, *row = nullptr;
    char *probability = nullptr;
    long count = 0, capacity = 0;
    bool impossible = false, no_memory = false;

    void reserve(long more, size_t size);
    ~Piece() {
        free(position);
        free(row);
        free(probability);
    }
};

template <class T>
T *larger(T *memory, size_t size) {
    void *moved = realloc(memory, size);
    if (!moved) throw std::bad_alloc();
    return (T *)moved;
}

void Piece::reserve(long more, size_t size) {
    if (count + more <= capacity) return;
    capacity = 2 * (count + more) + 1024;
    position = larger(position, capacity * sizeof *position);
    row = larger(row, capacity * sizeof *row);
    probability = larger(probability, capacity * size);
}

typedef void Kernel(const Work &, long first, long last, Piece &);
struct Kernels {
    Kernel *probabilities, *conjugates, *written, *gradients;
};

// The next smaller number: rounding to the size of the scores is to exclude nothing.
float below_of(float x) { return nextafterf(x, -INFINITY); }
double below_of(double x) { return nextafter(x, -INFINITY); }

namespace any_processor {
#define ENTMAX_SET 1
#define TARGET
#include "native_rows.h"
#undef ENTMAX_SET
#undef TARGET
}  // namespace any_processor

#ifdef ENTMAX_SETS
namespace with_avx2 {
#define ENTMAX_SET 2
#define TARGET __attribute__((target("avx2,fma,bmi")))
#include "native_rows.h"
#undef ENTMAX_SET
#undef TARGET
}  // namespace with_avx2

namespace with_avx512 {
#define ENTMAX_SET 3
#define TARGET \
    __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,fma,bmi,prefer-vector-width=512")))
#include "native_rows.h"
#undef ENTMAX_SET
#undef TARGET
}  // namespace with_avx512
#endif

int instruction_set = 1;

template <class T>
const Kernels *kernels() {
#ifdef ENTMAX_SETS
    if (instruction_set == 3) return with_avx512::kernels<T>();
    if (instruction_set == 2) return with_avx2::kernels<T>();
#endif
    return any_processor::kernels<T>();
}

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

void run_piece(Kernel *kernel, const Work &work, long first, long last, Piece &piece) {
    try {
        kernel(work, first, last, piece);
    } catch (const std::bad_alloc &) {
        piece.no_memory = true;
    }
}

// The pieces of some rows, to be taken by any number of threads.
struct Pieces {
    Kernel *kernel;
    const Work &work;
    std::vector<Piece> &pieces;
    std::atomic<long> next;

    void take() {
        const long count = (long)pieces.size();
        for (long at; (at = next++) < count;)
            run_piece(kernel, work, work.rows * at / count, work.rows * (at + 1) / count,
                      pieces[at]);
    }
};

void take_pieces(void *pieces) { ((Pieces *)pieces)->take(); }

// How GCC's programs start a team of OpenMP. PyTorch has loaded a runtime that knows it, whichever
// that is; its threads wait for work already, and a second team beside it would be in its way.
typedef void Parallel(void (*body)(void *), void *data, unsigned threads, unsigned flags);
Parallel *parallel = nullptr;

// The rows in contiguous pieces, one for each thread.
void run(Kernel *kernel, const Work &work, std::vector<Piece> &all) {
    Pieces pieces = {kernel, work, all, {0}};
    if (all.size() > 1 && parallel) {
        parallel(take_pieces, &pieces, (unsigned)all.size(), 0);
        return;
    }
    std::vector<std::thread> others;
    try {
        for (size_t at = 1; at < all.size(); ++at) others.emplace_back(take_pieces, &pieces);
    } catch (const std::system_error &) {  // no more threads to be had: fewer will do
    }
    pieces.take();
    for (std::thread &other : others) other.join();
}

// Runs without the lock; an exception is set if this returns false.
bool run_unlocked(Kernel *kernel, const Work &work, std::vector<Piece> &pieces) {
    Py_BEGIN_ALLOW_THREADS;
    run(kernel, work, pieces);
    Py_END_ALLOW_THREADS;
    bool impossible = false;
    for (const Piece &piece : pieces) {
        if (piece.no_memory) {
            PyErr_NoMemory();
            return false;
        }
        impossible |= piece.impossible;
    }
    if (impossible) PyErr_SetString(PyExc_ValueError, "a row is -inf everywhere");
    return !impossible;
}

long pieces_for(const Work &work, int threads) {
    long count = (long)((double)work.rows * work.n / SCORES_OF_A_THREAD);
    if (count > threads) count = threads;
    if (count > work.rows) count = work.rows;
    return count < 1 ? 1 : count;
}

// The arguments all functions begin with: type ("f" or "d"), alpha, whole order, rows, n, threads.
struct Common {
    int kind, threads;
    Work work;
};

void complete(Common &common) {
    Curve &curve = common.work.curve;
    curve.beta = curve.alpha - 1;
    curve.wanted = curve.order = curve.whole > 0 ? curve.whole : 1 / curve.beta;
    curve.level = pow(curve.beta, curve.order + 1);
}

const Kernels *kernels_of(const Common &common) {
    return common.kind == 'f' ? kernels<float>() : kernels<double>();
}

// Run a kernel that fills the memory it was given.
PyObject *fill(Common &common, Kernel *Kernels::*kernel) {
    complete(common);
    std::vector<Piece> pieces(pieces_for(common.work, common.threads));
    if (!run_unlocked(kernels_of(common)->*kernel, common.work, pieces)) return nullptr;
    Py_RETURN_NONE;
}

#define COMMON "Cdinni"
#define COMMON_ADDRESSES(c, rows, n) \
    &(c).kind, &(c).work.curve.alpha, &(c).work.curve.whole, &(rows), &(n), &(c).threads

PyObject *probabilities(PyObject *, PyObject *arguments) {
    Common common = {};
    Py_ssize_t rows, n, scores, out;
    int logs;
    if (!PyArg_ParseTuple(arguments, COMMON "nnp", COMMON_ADDRESSES(common, rows, n), &scores, &out,
                          &logs))
        return nullptr;
    Work &work = common.work;
    work.rows = rows, work.n = n, work.scores = (void *)scores, work.out = (void *)out,
    work.logs = logs;
    return fill(common, &Kernels::probabilities);
}

PyObject *written(PyObject *, PyObject *arguments) {
    Common common = {};
    Py_ssize_t rows, n, scores, maxima, threshold, factor, out;
    if (!PyArg_ParseTuple(arguments, COMMON "nnnnn", COMMON_ADDRESSES(common, rows, n), &scores,
                          &maxima, &threshold, &factor, &out))
        return nullptr;
    Work &work = common.work;
    work.rows = rows, work.n = n, work.scores = (void *)scores, work.maxima = (void *)maxima;
    work.threshold = (double *)threshold, work.factor = (void *)factor, work.out = (void *)out;
    return fill(common, &Kernels::written);
}

PyObject *gradients(PyObject *, PyObject *arguments) {
    Common common = {};
    Py_ssize_t rows, n, probability, incoming, out;
    if (!PyArg_ParseTuple(arguments, COMMON "nnn", COMMON_ADDRESSES(common, rows, n), &probability,
                          &incoming, &out))
        return nullptr;
    Work &work = common.work;
    work.rows = rows, work.n = n, work.scores = (void *)probability;
    work.incoming = (void *)incoming, work.out = (void *)out;
    return fill(common, &Kernels::gradients);
}

// One bytearray of what the pieces have of a part of their entries, each of a size.
PyObject *joined(const std::vector<Piece> &pieces, const char *(*part)(const Piece &),
                 size_t size) {
    size_t whole = 0;
    for (const Piece &piece : pieces) whole += piece.count * size;
    PyObject *result = PyByteArray_FromStringAndSize(nullptr, (Py_ssize_t)whole);
    if (!result) return nullptr;
    char *at = PyByteArray_AS_STRING(result);
    for (const Piece &piece : pieces) {
        if (piece.count) memcpy(at, part(piece), piece.count * size);
        at += piece.count * size;
    }
    return result;
}

PyObject *conjugates(PyObject *, PyObject *arguments) {
    Common common = {};
    Py_ssize_t rows, n, scores, excess, maxima, threshold, dense, most;
    if (!PyArg_ParseTuple(arguments, COMMON "nnnnnn", COMMON_ADDRESSES(common, rows, n), &scores,
                          &excess, &maxima, &threshold, &dense, &most))
        return nullptr;
    Work &work = common.work;
    work.rows = rows, work.n = n, work.scores = (void *)scores, work.excess = (void *)excess;
    work.maxima = (void *)maxima, work.threshold = (double *)threshold,
    work.dense = (uint8_t *)dense, work.most = most;
    complete(common);
    std::vector<Piece> pieces(pieces_for(work, common.threads));
    if (!run_unlocked(kernels_of(common)->conjugates, work, pieces)) return nullptr;
    PyObject *position = joined(pieces, [](const Piece &p) { return (const char *)p.position; }, 8);
    PyObject *row = joined(pieces, [](const Piece &p) { return (const char *)p.row; }, 8);
    PyObject *probability = joined(
        pieces, [](const Piece &p) { return (const char *)p.probability; },
        common.kind == 'f' ? 4 : 8);
    if (position && row && probability) return Py_BuildValue("NNN", position, row, probability);
    Py_XDECREF(position);
    Py_XDECREF(row);
    Py_XDECREF(probability);
    return nullptr;
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

PyMethodDef functions[] = {
    {"probabilities", probabilities, METH_VARARGS, "Entmax, or its logarithm, of rows."},
    {"conjugates", conjugates, METH_VARARGS,
     "Conjugates of rows; entries of those with a small support."},
    {"written", written, METH_VARARGS, "Probabilities of solved rows, times a factor for each."},
    {"gradients", gradients, METH_VARARGS, "Gradients in the scores."},
    {"use_instruction_set", use_instruction_set, METH_VARARGS,
     "1 any processor's, 2 AVX2, 3 AVX-512; by default the best there is. Returns what is used."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "_native",
                          "Entmax of rows on the CPU.",
                          -1,
                          functions,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__native(void) {
    instruction_set = best_instruction_set();
    parallel = (Parallel *)dlsym(RTLD_DEFAULT, "GOMP_parallel");
    return PyModule_Create(&definition);
}
