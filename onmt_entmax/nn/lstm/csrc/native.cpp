// The Python module of the LSTM's steps, called by ../native.py.
//
// A plan says where the memory of a layer or of the attention is, once for all steps of a batch; a
// call says which rows to compute. Python checks both and owns the memory. Plans are structs of
// 64-bit numbers in the order in which native.py packs them. The mathematics is in native_cells.h
// and native_attention.h.

#include "sparse/backends/csrc/native_common.h"

namespace {

// A matrix with a stride in numbers between its rows; null memory means that there is none.
struct Rows {
    void *memory;
    int64_t stride;
};

struct CellPlan {
    int64_t hidden;
    Rows entering, outputs, last, last_cell, above, factors;  // see Cells in cells.py
    Rows states;    // hidden states before each step, as the products read them
    Rows cells;     // cell states before each step
    Rows gates;     // their sigmoids
    Rows squashed;  // tanh of the cell states after each step
};
struct CellCall {
    Py_ssize_t start, rows;     // packed
    Py_ssize_t next, going_on;  // of the next step
    Py_ssize_t product;         // (rows, 4 * hidden)
};

struct CellBackPlan {
    Rows grad_hidden, grad_cell;  // of the last states
    Rows grad_gates, cast_grad_gates;  // in float32, and in the type of the products if another
    float *bias;
};
struct CellBackCall {
    Py_ssize_t start, rows, going_on;
    Rows recurrent;      // gradient of the hidden states from the next step
    Rows output, above;  // from the outputs, and from the layer above
};

struct AttendPlan {
    int64_t hidden, batch, length;
    const float *keys, *values;  // (batch, length, hidden)
    const int64_t *lengths;      // (batch,) or null
    float *weights;              // (steps, batch, length), zeros at first
    Rows queries, attentional, outputs, factors, fed;  // see Readout in attention.py
    double alpha;
    int64_t whole_order;  // 1 / (alpha - 1) if it is a whole number, else -1

    Curve curve() const { return Curve::of(alpha, (int)whole_order); }
};
struct AttendCall {
    Py_ssize_t step, start, rows, next, going_on;
    Py_ssize_t product;  // (rows, hidden)
};

struct AttendBackPlan {
    const float *weights;       // as above
    const float *grad_weights;  // or null
    float *grad_scores;         // (steps, batch, length), zeros at first
    const float *attentional;   // (total, hidden)
    float *grad;                // (total, hidden), of the outputs; becomes that before the tanh
    void *cast_grad;            // the same in the type of the products, or null if that is float32
    float *query;               // (batch, hidden), of one step
};
struct AttendBackCall {
    Py_ssize_t step, start, rows, going_on;
    Rows fed;  // gradient of the next step's input feed
};

struct Kernels {
    void (*cell_forward)(const CellPlan &, const CellCall &, long first, long last);
    void (*cell_backward)(const CellPlan &, const CellBackPlan &, const CellBackCall &, long first,
                          long last);
    void (*attend)(const AttendPlan &, const AttendCall &, long first, long last);
    void (*attend_backward)(const AttendPlan &, const AttendBackPlan &, const AttendBackCall &,
                            long first, long last);
};

}  // namespace

#define ENTMAX_BODY "nn/lstm/csrc/native_attention.h"
#include "sparse/backends/csrc/native_sets.h"

namespace {

const Kernels *kernels_of(int kind) { return kind == 'b' ? kernels<uint16_t>() : kernels<float>(); }

// Numbers for which starting a thread pays; a cell takes some 1.5 ns for each.
const long NUMBERS_OF_A_THREAD = 1 << 13;

// Divides columns of cells, or rows of attention, into ranges that begin at multiples of `grain`.
template <class Body>
struct Divided {
    const Body &body;
    long count, grain, parts;

    static void take(void *data, long part) {
        const Divided &all = *(Divided *)data;
        const long grains = (all.count + all.grain - 1) / all.grain;
        const long first = grains * part / all.parts * all.grain;
        const long end = grains * (part + 1) / all.parts * all.grain;
        all.body(first, end < all.count ? end : all.count);
    }
};

template <class Body>
void divide(long count, long grain, double numbers, int threads, const Body &body) {
    long parts = (long)(numbers / NUMBERS_OF_A_THREAD);
    if (parts > threads) parts = threads;
    if (parts < 2) {
        body(0, count);
        return;
    }
    Divided<Body> divided = {body, count, grain, parts};
    share(parts, Divided<Body>::take, &divided);
}

// A plan as packed by Python.
struct Packed {
    const char *bytes;
    Py_ssize_t size;

    template <class Plan>
    bool is(const Plan *&plan) const {
        plan = (const Plan *)bytes;
        if (size == (Py_ssize_t)sizeof(Plan)) return true;
        PyErr_Format(PyExc_ValueError, "a plan of %zd bytes, not %zd", size,
                     (Py_ssize_t)sizeof(Plan));
        return false;
    }
};

#define PACKED(p) &(p).bytes, &(p).size
#define ROWS(r) &(r).memory, &(r).stride

PyObject *cell_forward(PyObject *, PyObject *arguments) {
    int kind, threads;
    Packed packed;
    CellCall call;
    const CellPlan *plan;
    if (!PyArg_ParseTuple(arguments, "Ciy#nnnnn", &kind, &threads, PACKED(packed), &call.start,
                          &call.rows, &call.next, &call.going_on, &call.product) ||
        !packed.is(plan))
        return nullptr;
    const Kernels *kernels = kernels_of(kind);
    divide(plan->hidden, 16, (double)call.rows * plan->hidden, threads,
           [&](long first, long last) { kernels->cell_forward(*plan, call, first, last); });
    Py_RETURN_NONE;
}

PyObject *cell_backward(PyObject *, PyObject *arguments) {
    int kind, threads;
    Packed packed, packed_back;
    CellBackCall call;
    const CellPlan *plan;
    const CellBackPlan *back;
    if (!PyArg_ParseTuple(arguments, "Ciy#y#nnnnnnnnn", &kind, &threads, PACKED(packed),
                          PACKED(packed_back), &call.start, &call.rows, &call.going_on,
                          ROWS(call.recurrent), ROWS(call.output), ROWS(call.above)) ||
        !packed.is(plan) || !packed_back.is(back))
        return nullptr;
    const Kernels *kernels = kernels_of(kind);
    divide(plan->hidden, 16, (double)call.rows * plan->hidden, threads,
           [&](long first, long last) { kernels->cell_backward(*plan, *back, call, first, last); });
    Py_RETURN_NONE;
}

// Runs `body` on ranges of attention rows; raises MemoryError if an allocation fails.
template <class Body>
PyObject *attended(const AttendPlan &plan, long rows, int threads, const Body &body) {
    std::atomic<bool> no_memory(false);
    // Reading a key or a value takes about a fourth of the time of a number of a cell.
    const double numbers = (double)rows * plan.hidden * (2 + plan.length / 2.0);
    divide(rows, 1, numbers, threads, [&](long first, long last) {
        try {
            body(first, last);
        } catch (const std::bad_alloc &) {
            no_memory = true;
        }
    });
    if (no_memory) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

PyObject *attend(PyObject *, PyObject *arguments) {
    int kind, threads;
    Packed packed;
    AttendCall call;
    const AttendPlan *plan;
    if (!PyArg_ParseTuple(arguments, "Ciy#nnnnnn", &kind, &threads, PACKED(packed), &call.step,
                          &call.start, &call.rows, &call.next, &call.going_on, &call.product) ||
        !packed.is(plan))
        return nullptr;
    const Kernels *kernels = kernels_of(kind);
    return attended(*plan, call.rows, threads,
                    [&](long first, long last) { kernels->attend(*plan, call, first, last); });
}

PyObject *attend_backward(PyObject *, PyObject *arguments) {
    int kind, threads;
    Packed packed, packed_back;
    AttendBackCall call;
    const AttendPlan *plan;
    const AttendBackPlan *back;
    if (!PyArg_ParseTuple(arguments, "Ciy#y#nnnnnn", &kind, &threads, PACKED(packed),
                          PACKED(packed_back), &call.step, &call.start, &call.rows, &call.going_on,
                          ROWS(call.fed)) ||
        !packed.is(plan) || !packed_back.is(back))
        return nullptr;
    const Kernels *kernels = kernels_of(kind);
    return attended(*plan, call.rows, threads, [&](long first, long last) {
        kernels->attend_backward(*plan, *back, call, first, last);
    });
}

PyMethodDef functions[] = {
    {"cell_forward", cell_forward, METH_VARARGS, "One step of one layer of an LSTM."},
    {"cell_backward", cell_backward, METH_VARARGS, "Gradient of cell_forward."},
    {"attend", attend, METH_VARARGS, "One step of attention, tanh and dropout."},
    {"attend_backward", attend_backward, METH_VARARGS, "Gradient of attend."},
    {"use_instruction_set", use_instruction_set, METH_VARARGS,
     "1 any processor's, 2 AVX2, 3 AVX-512; by default the best there is. Returns what is used."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "_native",
                          "Steps of LSTMs with attention on a CPU.",
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
