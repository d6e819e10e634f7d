// The table of the functions that lstm.cpp calls, under one instruction set: native_dispatch.h
// compiles this file, its ENTMAX_BODY, once for each set.

// In this order, since each uses what stands before: native_row.h brings the vectors of
// native_vectors.h and maps scores to attention's weights, and cells and attention share
// lstm_vectors.h.
#include "sparse/backends/csrc/native_row.h"
#include "recurrence/backends/csrc/lstm_vectors.h"
#include "recurrence/backends/csrc/lstm_cells.h"
#include "recurrence/backends/csrc/lstm_attention.h"

// native_dispatch.h asks for the functions of a type T. LSTMs compute in float32 whatever T is, and
// lstm.cpp calls this for float.
template <class T>
TARGET const Kernels *kernels() {
    static const Kernels all = {cell_forward, cell_backward, attend, attend_backward};
    return &all;
}
