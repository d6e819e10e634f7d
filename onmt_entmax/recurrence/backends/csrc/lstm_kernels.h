// The steps that lstm.cpp starts, under one instruction set: see native_instruction_sets.h.

#include "sparse/backends/csrc/native_row.h"
#include "recurrence/backends/csrc/lstm_vectors.h"
#include "recurrence/backends/csrc/lstm_cells.h"
#include "recurrence/backends/csrc/lstm_attention.h"

template <class T>
TARGET const Kernels *kernels() {
    static const Kernels all = {cell_forward, cell_backward, attend, attend_backward};
    return &all;
}
