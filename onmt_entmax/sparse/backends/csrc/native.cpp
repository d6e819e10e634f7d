// The extension module of entmax on a CPU, called by ../cpu_rows.py and ../cpu_attention.py.
//
// Python checks arguments, multiplies matrices, and passes addresses of contiguous memory. Here
// rows are divided among a few threads, with the interpreter's lock released. native_kernels.h has
// the loops over rows. It is compiled for three instruction sets, of which the best one that the
// processor has runs.

#include "sparse/backends/csrc/native_instruction_sets.h"
#include "sparse/backends/csrc/native_memory.h"
#include "sparse/backends/csrc/native_threads.h"
#include "sparse/backends/csrc/native_curve.h"

namespace {

// Each thread gets at least this many scores: for fewer, it does not pay.
const long SCORES_OF_A_THREAD = 1 << 16;

// Kinds of masks of attention, as in ../cpu_structs.py: none; causal, query i attends to keys 0 to
// i; booleans, true where a query attends; numbers, which are added to scaled scores.
enum { NO_MASK, CAUSAL, BOOLEANS, NUMBERS };

// Rows (rows, n) of scores, of the type T that `run` is given: float or double. Memory of type
// `void` has numbers of type T. Python packs this struct and the next as `Rows` and `Heads` of
// ../cpu_structs.py, with the same fields in the same order. Only the size of a struct is checked.
struct Rows {
    double alpha;            // of all rows, if there are no alphas
    const double *alphas;    // (rows,), or null
    const void *scores;      // (rows, n)
    void *out;               // (rows, n), probabilities or logarithms; may be the scores; or null
    void *shifted, *maxima;  // (rows,), shifted conjugates and largest scores; or null
    int64_t logs;            // whether to write logarithms
    // What `map_rows` keeps for `scale_rows`, or null.
    double *threshold;   // (rows, 2), thresholds and, above alpha 2, smallest probabilities
    int64_t *sizes;      // (rows,), sizes of supports, or -1 for those larger than `room`
    int32_t *column;     // (rows, room), columns of supports
    void *value;         // (rows, room), probabilities of supports
    int64_t room;        // the size of the largest support that is kept
    const void *factor;  // (rows,), what `scale_rows` multiplies probabilities by
};

// Some adjacent heads of attention, `count` of (outer, heads). `forward` turns their scores, of
// shape (count, queries, keys), into weights. `backward` turns gradients with respect to weights
// into gradients with respect to scores.
struct Heads {
    int64_t first;        // number of the first head, counted over all (outer, heads)
    int64_t queries;      // number of queries of a head
    const double *alpha;  // (heads,)
    int64_t heads;        // number of heads of an outer index
    const char *mask;     // (outer, heads, queries, keys), or null; see `mask_kind`
    int64_t mask_kind;
    int64_t mask_outer, mask_head, mask_row;  // strides of the mask, in elements
    double scale;         // factor of the scores in `forward`, of their gradient in `backward`
    double dropped_part;  // the probability of dropout
    int64_t seed;         // of dropout
    // All (count, queries, keys) and contiguous. `weights` has the scores before `forward`, and
    // the weights after; those that dropout drops are negative. `used` receives the weights after
    // dropout: 0, or divided by the probability of being kept; null without dropout.
    void *weights, *used;
    const void *incoming;    // the gradient with respect to the weights after dropout
    void *gradient;          // receives that with respect to the scores; may be `incoming`
    double *alpha_gradient;  // (count, queries), each query's part; null if it is not wanted
};

// A function that works on the rows from `first` up to `last`, of n scores each; `packed` is a
// struct `Rows` or `Heads`. It returns whether a row is -inf everywhere, which is an error.
typedef bool Kernel(const void *packed, long n, long first, long last, Memory &);
struct Kernels {
    Kernel *map_rows, *scale_rows, *forward, *backward;
};

}  // namespace

#define ENTMAX_BODY "sparse/backends/csrc/native_kernels.h"
#include "sparse/backends/csrc/native_dispatch.h"

namespace {

// A kernel and its rows, divided into ranges of about equal length, one for each part.
struct Ranges {
    Kernel *kernel;
    const void *packed;
    long rows, n, parts;
    std::atomic<bool> no_memory, impossible;
};

void run_range(void *data, long part) {
    Ranges &ranges = *(Ranges *)data;
    Memory memory;
    try {
        if (ranges.kernel(ranges.packed, ranges.n, ranges.rows * part / ranges.parts,
                          ranges.rows * (part + 1) / ranges.parts, memory))
            ranges.impossible = true;
    } catch (const std::bad_alloc &) {
        ranges.no_memory = true;
    }
}

// Runs a kernel over all rows. Arguments: type ("f" or "d"), threads, rows, n, packed struct.
PyObject *run(PyObject *arguments, Kernel *Kernels::*kernel, size_t struct_size) {
    int kind, threads;
    const char *packed;
    Py_ssize_t rows, n, size;
    if (!PyArg_ParseTuple(arguments, "Cinny#", &kind, &threads, &rows, &n, &packed, &size))
        return nullptr;
    if ((size_t)size != struct_size)
        return PyErr_Format(PyExc_TypeError, "%zd bytes instead of %zu", size, struct_size);
    const Kernels *all = kind == 'f' ? kernels<float>() : kernels<double>();
    const long parts = number_of_parts(rows, threads, (double)rows * n, SCORES_OF_A_THREAD);
    Ranges ranges = {all->*kernel, packed, rows, n, parts, {false}, {false}};
    Py_BEGIN_ALLOW_THREADS;
    run_parts(ranges.parts, run_range, &ranges);
    Py_END_ALLOW_THREADS;
    if (ranges.no_memory) return PyErr_NoMemory();
    if (ranges.impossible) {
        PyErr_SetString(PyExc_ValueError, "a row is -inf everywhere");
        return nullptr;
    }
    Py_RETURN_NONE;
}

PyObject *map_rows(PyObject *, PyObject *arguments) {
    return run(arguments, &Kernels::map_rows, sizeof(Rows));
}
PyObject *scale_rows(PyObject *, PyObject *arguments) {
    return run(arguments, &Kernels::scale_rows, sizeof(Rows));
}
PyObject *forward(PyObject *, PyObject *arguments) {
    return run(arguments, &Kernels::forward, sizeof(Heads));
}
PyObject *backward(PyObject *, PyObject *arguments) {
    return run(arguments, &Kernels::backward, sizeof(Heads));
}

PyMethodDef functions[] = {
    {"map_rows", map_rows, METH_VARARGS, "Write entmax of rows or its logarithm, and conjugates."},
    {"scale_rows", scale_rows, METH_VARARGS, "Write probabilities of solved rows times factors."},
    {"forward", forward, METH_VARARGS, "Turn scores of attention into weights, in place."},
    {"backward", backward, METH_VARARGS, "Turn gradients of weights into gradients of scores."},
    {"use_instruction_set", use_instruction_set, METH_VARARGS,
     "Use 1 (any processor), 2 (AVX2) or 3 (AVX-512), by default the best; return it."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_native", "Entmax on a CPU.", -1, functions};

}  // namespace

PyMODINIT_FUNC PyInit__native(void) {
    use_best_instruction_set();
    find_openmp();
    return PyModule_Create(&definition);
}
