// The table of the functions that lstm.cpp calls, under one instruction set: native_dispatch.h
// compiles this file, its ENTMAX_BODY, once for each set. lstm.cpp has the struct `Kernels`.

// The order matters: each header uses those above it.
#include "sparse/backends/csrc/native_row.h"  // vectors, and entmax for the attention's weights
#include "recurrence/backends/csrc/lstm_vectors.h"
#include "recurrence/backends/csrc/lstm_cells.h"
#include "recurrence/backends/csrc/lstm_attention.h"

// native_dispatch.h needs a template for the type of the numbers. LSTMs compute in float32 only, so
// T is always float, and nothing here depends on it.
template <class T>
TARGET const Kernels *kernels() {
    static const Kernels all = {cell_forward, cell_backward, attend, attend_backward};
    return &all;
}
