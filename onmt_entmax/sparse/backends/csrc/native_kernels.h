// The table of the functions that native.cpp calls, under one instruction set: native_dispatch.h
// compiles this file, its ENTMAX_BODY, once for each set. native.cpp has the struct `Kernels`.

// The order matters: each header uses those above it.
#include "sparse/backends/csrc/native_row.h"  // includes vectors, powers, candidates, thresholds
#include "sparse/backends/csrc/native_anchor.h"
#include "sparse/backends/csrc/native_logarithms.h"
#include "sparse/backends/csrc/native_map.h"
#include "sparse/backends/csrc/native_dropout.h"
#include "sparse/backends/csrc/native_attention.h"
#include "sparse/backends/csrc/native_gradient.h"
#include "sparse/backends/csrc/native_gradient_above_two.h"
#include "sparse/backends/csrc/native_attention_gradient.h"

template <class T>
TARGET const Kernels *kernels() {
    static const Kernels all = {map_rows<T>, scale_rows<T>, forward<T>, backward<T>};
    return &all;
}
