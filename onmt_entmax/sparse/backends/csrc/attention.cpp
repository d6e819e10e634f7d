// The extension module of attention on a CPU, called by ../cpu_attention.py.
//
// Python multiplies the matrices. Here are the passes over the rows of scores between two products,
// each in place: scores become weights, and gradients in weights those in scores. Addresses are of
// contiguous memory that Python has checked. attention_rows.h has the mathematics.

#include "sparse/backends/csrc/native_common.h"

namespace {

// The fewest scores worth a thread.
const long SCORES_OF_A_THREAD = 1 << 15;

enum { NO_MASK, CAUSAL, BOOLEANS, NUMBERS };

// The scores of some heads, ``(count, queries, keys)``. Of all, ``(outer, heads)``, the first has
// the number ``first``.
// Python packs the struct, in this order.
struct Heads {
    int64_t first, count, queries, keys;
    const double *alpha;  // (heads,)
    int64_t heads;
    const char *mask;
    int64_t mask_kind;
    int64_t mask_outer, mask_head, mask_row;  // strides, in numbers
    double scale;            // of scores; in the gradient, of the result
    double dropped_part;     // the probability of dropout
    int64_t seed;
    // Contiguous and like the scores. Weights that dropout drops are negative; ``used`` are the
    // remaining ones over the probability of remaining, or null without dropout.
    void *weights, *used;
    void *gradient;        // in the weights as used; becomes that in the scores
    double *alpha_gradient;  // (count, queries), or null if it is not wanted
};

typedef void Kernel(const Heads &, long first, long last, Memory &);
struct Kernels {
    Kernel *forward, *backward;
};

}  // namespace

#define ENTMAX_BODY "sparse/backends/csrc/attention_rows.h"
#include "sparse/backends/csrc/native_sets.h"

namespace {

struct Ranges {
    Kernel *kernel;
    const Heads &heads;
    long parts;
    std::atomic<bool> no_memory;
};

void take_range(void *data, long part) {
    Ranges &all = *(Ranges *)data;
    const long rows = all.heads.count * all.heads.queries;
    Memory memory;
    try {
        all.kernel(all.heads, rows * part / all.parts, rows * (part + 1) / all.parts, memory);
    } catch (const std::bad_alloc &) {
        all.no_memory = true;
    }
}

// Run a kernel over all rows, with the interpreter's lock released.
PyObject *run(PyObject *arguments, Kernel *Kernels::*kernel) {
    int kind, threads;
    const char *packed;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(arguments, "Ciy#", &kind, &threads, &packed, &size)) return nullptr;
    Heads heads;
    if (size != (Py_ssize_t)sizeof heads)
        return PyErr_Format(PyExc_ValueError, "%zd bytes instead of %zd", size,
                            (Py_ssize_t)sizeof heads);
    memcpy(&heads, packed, sizeof heads);
    const Kernels *all = kind == 'f' ? kernels<float>() : kernels<double>();
    const long rows = heads.count * heads.queries;
    long parts = (long)((double)rows * heads.keys / SCORES_OF_A_THREAD);
    if (parts > threads) parts = threads;
    if (parts > rows) parts = rows;
    Ranges ranges = {all->*kernel, heads, parts < 1 ? 1 : parts, {false}};
    Py_BEGIN_ALLOW_THREADS;
    share(ranges.parts, take_range, &ranges);
    Py_END_ALLOW_THREADS;
    if (ranges.no_memory) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

PyObject *forward(PyObject *, PyObject *arguments) { return run(arguments, &Kernels::forward); }
PyObject *backward(PyObject *, PyObject *arguments) { return run(arguments, &Kernels::backward); }

PyMethodDef functions[] = {
    {"forward", forward, METH_VARARGS, "Turn scores into weights, in place."},
    {"backward", backward, METH_VARARGS, "Turn gradients in weights into those in scores."},
    {"use_instruction_set", use_instruction_set, METH_VARARGS,
     "Use 1 (any processor), 2 (AVX2) or 3 (AVX-512), by default the best; return it."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "_attention",
                          "Rows of attention on the CPU.",
                          -1,
                          functions,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__attention(void) {
    begin();
    return PyModule_Create(&definition);
}
