// The extension module of the C++ backend, called by cpu.py.
//
// Each function takes addresses of contiguous memory, which cpu.py has checked, and distributes the
// rows over a few threads with the interpreter's lock released. native_threshold.h solves a row,
// native_rows.h loops over rows; both are compiled for three instruction sets, of which the
// processor's best runs.

#include "sparse/backends/csrc/native_common.h"

namespace {

// The fewest scores worth a thread.
const long SCORES_OF_A_THREAD = 1 << 17;

struct Work {
    const void *scores;      // (rows, n); for gradients, probabilities or their logarithms
    const void *incoming;    // (rows, n)
    const void *factor;      // (rows,) or null
    void *out;               // (rows, n)
    void *shifted, *maxima;  // (rows,); shifted conjugates
    double *threshold;       // (rows,)
    uint8_t *dense;          // (rows,)
    long rows, n;
    long most;  // entries of a sparse row; with more it is dense
    Curve curve;           // of all rows, or
    const double *alphas;  // (rows,), or null
    bool logs;
};

// The curves of rows, one after the other.
struct Curves {
    const double *alphas;
    Curve curve;

    explicit Curves(const Work &work) : alphas(work.alphas), curve(work.curve) {}
    const Curve &of(long row) {
        if (alphas && alphas[row] != curve.alpha) curve = Curve::of(alphas[row]);
        return curve;
    }
};

// The entries that one thread finds in its rows.
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
    Kernel *probabilities, *conjugates, *written, *gradients, *log_gradients;
};

}  // namespace

#define ENTMAX_BODY "sparse/backends/csrc/native_rows.h"
#include "sparse/backends/csrc/native_sets.h"

namespace {

void run_piece(Kernel *kernel, const Work &work, long first, long last, Piece &piece) {
    try {
        kernel(work, first, last, piece);
    } catch (const std::bad_alloc &) {
        piece.no_memory = true;
    }
}

// The rows in contiguous pieces, one for each thread.
struct Pieces {
    Kernel *kernel;
    const Work &work;
    std::vector<Piece> &pieces;
};

void take_piece(void *data, long at) {
    const Pieces &all = *(Pieces *)data;
    const long rows = all.work.rows, count = (long)all.pieces.size();
    run_piece(all.kernel, all.work, rows * at / count, rows * (at + 1) / count, all.pieces[at]);
}

// Run a kernel without the lock; return false with an exception set if it fails.
bool run_unlocked(Kernel *kernel, const Work &work, std::vector<Piece> &pieces) {
    Py_BEGIN_ALLOW_THREADS;
    Pieces all = {kernel, work, pieces};
    share((long)pieces.size(), take_piece, &all);
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

// The first arguments of all functions: type ("f" or "d"), alpha, whole order, address of the rows'
// alphas or 0, rows, n, threads.
struct Common {
    int kind, threads;
    Work work;
};

void complete(Common &common) {
    Curve &curve = common.work.curve;
    if (!common.work.alphas) curve = Curve::of(curve.alpha, curve.whole);
}

const Kernels *kernels_of(const Common &common) {
    return common.kind == 'f' ? kernels<float>() : kernels<double>();
}

// Run a kernel that writes into given memory only.
PyObject *fill(Common &common, Kernel *Kernels::*kernel) {
    complete(common);
    std::vector<Piece> pieces(pieces_for(common.work, common.threads));
    if (!run_unlocked(kernels_of(common)->*kernel, common.work, pieces)) return nullptr;
    Py_RETURN_NONE;
}

#define COMMON "Cdinnni"
#define COMMON_ADDRESSES(c, rows, n) \
    &(c).kind, &(c).work.curve.alpha, &(c).work.curve.whole, &(c).work.alphas, &(rows), &(n), \
        &(c).threads

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
    Py_ssize_t rows, n, result, incoming, out;
    int logs = false;
    if (!PyArg_ParseTuple(arguments, COMMON "nnn|p", COMMON_ADDRESSES(common, rows, n), &result,
                          &incoming, &out, &logs))
        return nullptr;
    Work &work = common.work;
    work.rows = rows, work.n = n, work.scores = (void *)result;
    work.incoming = (void *)incoming, work.out = (void *)out;
    return fill(common, logs ? &Kernels::log_gradients : &Kernels::gradients);
}

// Join one part of the entries of all pieces into a bytearray; ``size`` is that of an entry.
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
    Py_ssize_t rows, n, scores, shifted, maxima, threshold, dense, most;
    if (!PyArg_ParseTuple(arguments, COMMON "nnnnnn", COMMON_ADDRESSES(common, rows, n), &scores,
                          &shifted, &maxima, &threshold, &dense, &most))
        return nullptr;
    Work &work = common.work;
    work.rows = rows, work.n = n, work.scores = (void *)scores, work.shifted = (void *)shifted;
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

PyMethodDef functions[] = {
    {"probabilities", probabilities, METH_VARARGS, "Write entmax of rows, or its logarithm."},
    {"conjugates", conjugates, METH_VARARGS,
     "Write shifted conjugates of rows; return the entries of sparse rows."},
    {"written", written, METH_VARARGS, "Write probabilities of solved rows, times factors."},
    {"gradients", gradients, METH_VARARGS, "Write gradients in the scores."},
    {"use_instruction_set", use_instruction_set, METH_VARARGS,
     "Use 1 (any processor), 2 (AVX2) or 3 (AVX-512), by default the best; return it."},
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
    begin();
    return PyModule_Create(&definition);
}
