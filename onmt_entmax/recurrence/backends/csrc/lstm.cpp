// The Python module of the steps of LSTMs with attention, called by ../native.py.
//
// Each function takes the fields of one struct below as 64-bit numbers: sizes, strides, and
// addresses of memory that Python owns. ../native.py passes them **in the order of the struct**,
// whose size alone is checked: two fields in the wrong order would go unnoticed.
//
// Numbers are float32. With `is_bfloat16`, the fields of type `void *`, which products with weights
// write or read, are bfloat16. The mathematics is in lstm_cells.h and lstm_attention.h;
// ../contract.py describes arguments and results. While a function runs, it keeps the lock of
// Python's interpreter, so that other threads of Python wait for it.

#include "sparse/backends/csrc/native_instruction_sets.h"
#include "sparse/backends/csrc/native_memory.h"
#include "sparse/backends/csrc/native_threads.h"
#include "sparse/backends/csrc/native_curve.h"

namespace {

// A matrix with a stride between its rows, in elements. All other matrices are contiguous. Matrices
// are (rows, hidden) unless noted otherwise. `factors` are those of dropout, or null.
struct StridedMatrix {
    const float *memory;
    int64_t stride;

    const float *row(int64_t k) const { return memory + k * stride; }
};

struct CellForward {
    int64_t threads, rows, hidden, is_bfloat16;
    const void *gates;      // products (rows, 4 * hidden)
    StridedMatrix summand;  // (rows, 4 * hidden), added to them; its stride may be 0
    const float *cell, *factors;
    float *activations;  // (rows, 4 * hidden); may be the memory of float32 gates
    float *output, *hidden_after, *cell_after;
};

struct CellBackward {
    int64_t threads, rows, hidden, is_bfloat16;
    const float *activations;  // (rows, 4 * hidden)
    const float *cell, *cell_after, *factors;
    StridedMatrix grad_output, grad_hidden, grad_cell_after;
    void *grad_gates;  // of the gates before their activations, (rows, 4 * hidden)
    float *grad_cell;
};

// The sources that rows attend to.
struct Sources {
    int64_t length;
    const float *keys, *values;  // (sentences, length, hidden)
    const int64_t *lengths;      // (sentences,)
    const int64_t *owners;       // (rows,), or null: row k attends to sentence k
    double alpha;

    int64_t sentence_of(int64_t row) const { return owners ? owners[row] : row; }
};

struct Attend {
    int64_t threads, rows, hidden, is_bfloat16;
    Sources sources;
    const float *query;
    const void *projected;
    const float *factors;
    float *weights;  // (rows, length)
    float *output;
};

struct AttendBackward {
    int64_t threads, rows, hidden, is_bfloat16;
    Sources sources;
    const float *factors;
    const float *weights;  // (rows, length)
    const float *output;
    void *grad_projected;  // the gradient with respect to the argument of the tanh
    float *grad_scores;    // (rows, length)
    float *grad_query;
    StridedMatrix grad_output;
};

// Functions that work on rows from `first` up to `last`.
struct Kernels {
    void (*cell_forward)(const CellForward &, long first, long last);
    void (*cell_backward)(const CellBackward &, long first, long last);
    void (*attend)(const Attend &, long first, long last);
    void (*attend_backward)(const AttendBackward &, long first, long last);
};

}  // namespace

#define ENTMAX_BODY "recurrence/backends/csrc/lstm_kernels.h"
#include "sparse/backends/csrc/native_dispatch.h"

namespace {

// Each thread gets at least the work of this many numbers of a cell, which take some 1.5 ns each:
// for less, a thread does not pay.
const long NUMBERS_OF_A_THREAD = 1 << 13;

// A call whose rows are divided into ranges of about equal length, one for each part.
template <class Call>
struct RowRanges {
    const Call &call;
    void (*body)(const Call &, long first, long last);
    long parts;
    std::atomic<bool> no_memory;

    static void run(void *data, long part) {
        RowRanges &ranges = *(RowRanges *)data;
        const long rows = ranges.call.rows, parts = ranges.parts;
        try {
            ranges.body(ranges.call, rows * part / parts, rows * (part + 1) / parts);
        } catch (const std::bad_alloc &) {
            ranges.no_memory = true;
        }
    }
};

// Reads a call from Python's numbers, and runs a body on its rows. `length` returns how many source
// positions a row reads, 0 for cells.
template <class Call>
PyObject *run(PyObject *const *numbers, Py_ssize_t count,
              void (*body)(const Call &, long first, long last), long length(const Call &)) {
    Call call;
    if (count * sizeof(int64_t) != sizeof call)
        return PyErr_Format(PyExc_TypeError, "%zd numbers, not %zd", count,
                            (Py_ssize_t)(sizeof call / sizeof(int64_t)));
    for (Py_ssize_t i = 0; i < count; ++i) {
        const int64_t number = PyLong_AsLongLong(numbers[i]);
        memcpy((char *)&call + i * sizeof number, &number, sizeof number);
    }
    if (PyErr_Occurred()) return nullptr;
    // Reading a number of a key or a value takes about a fourth of the time of a number of a cell.
    const double work = (double)call.rows * call.hidden * (1 + length(call) / 2.0);
    const long parts = number_of_parts(call.rows, call.threads, work, NUMBERS_OF_A_THREAD);
    RowRanges<Call> ranges = {call, body, parts, {false}};
    run_parts(ranges.parts, RowRanges<Call>::run, &ranges);
    if (ranges.no_memory) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

PyObject *cell_forward(PyObject *, PyObject *const *numbers, Py_ssize_t count) {
    return run<CellForward>(numbers, count, kernels<float>()->cell_forward,
                            [](const CellForward &) { return 0L; });
}

PyObject *cell_backward(PyObject *, PyObject *const *numbers, Py_ssize_t count) {
    return run<CellBackward>(numbers, count, kernels<float>()->cell_backward,
                             [](const CellBackward &) { return 0L; });
}

PyObject *attend(PyObject *, PyObject *const *numbers, Py_ssize_t count) {
    return run<Attend>(numbers, count, kernels<float>()->attend,
                       [](const Attend &call) { return (long)call.sources.length; });
}

PyObject *attend_backward(PyObject *, PyObject *const *numbers, Py_ssize_t count) {
    return run<AttendBackward>(
        numbers, count, kernels<float>()->attend_backward,
        [](const AttendBackward &call) { return (long)call.sources.length; });
}

#define FUNCTION(name, doc) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, doc}
PyMethodDef functions[] = {
    FUNCTION(cell_forward, "One step of one layer of an LSTM."),
    FUNCTION(cell_backward, "The backward pass of cell_forward."),
    FUNCTION(attend, "One step of attention, tanh and dropout."),
    FUNCTION(attend_backward, "The backward pass of attend."),
    {"use_instruction_set", use_instruction_set, METH_VARARGS,
     "1 any processor's, 2 AVX2, 3 AVX-512; by default the best there is. Returns what is used."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_native",
                          "Steps of LSTMs with attention on a CPU.", -1, functions};

}  // namespace

PyMODINIT_FUNC PyInit__native(void) {
    use_best_instruction_set();
    find_openmp();
    return PyModule_Create(&definition);
}
