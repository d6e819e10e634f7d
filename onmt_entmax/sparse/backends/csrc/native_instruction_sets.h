// The instruction sets for which a module's kernels are compiled, and the one in use.
//
// An ordinary header. The source file of each module includes it first; it includes the system
// headers that kernels need. native_dispatch.h then compiles the kernels once for each set, and has
// the rules for their headers.

#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

// The headers of kernels use these and cannot include them, since they are compiled inside
// namespaces.
#include <math.h>
#include <stdint.h>
#include <string.h>

// With Clang, the module has the first set alone: native_dispatch.h uses attributes of GCC.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define ENTMAX_X86_SETS 1
#include <immintrin.h>
#endif

// The sets, as `use_instruction_set` and ENTMAX_SET number them. The first is the baseline, which
// every processor of an architecture has: SSE2 on x86-64.
#define ENTMAX_ANY_PROCESSOR 1
#define ENTMAX_AVX2 2
#define ENTMAX_AVX512 3

namespace {

// ---- the set in use --------------------------------------------------------------------------

// Each module has its own, since each is compiled from a single source file.
int instruction_set = ENTMAX_ANY_PROCESSOR;

// Returns the best set of which this processor has every extension.
//
// GCC may use each extension that the attributes in native_dispatch.h name, so all of them are
// checked, with FMA (multiply and add in one step) and BMI (operations on single bits). A virtual
// machine may offer AVX2 and hide BMI, and the first missing instruction would end the process.
int best_instruction_set() {
#ifdef ENTMAX_X86_SETS
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi"))
        return ENTMAX_ANY_PROCESSOR;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        return ENTMAX_AVX512;
    if (__builtin_cpu_supports("avx2")) return ENTMAX_AVX2;
#endif
    return ENTMAX_ANY_PROCESSOR;
}

// Each module calls this once, when Python loads it.
void use_best_instruction_set() { instruction_set = best_instruction_set(); }

// ---- for Python ------------------------------------------------------------------------------

// The function `use_instruction_set(number)` of each Python module, with which tests try every set.
// Without a number, it takes the best set. It returns the number of the set that is now in use.
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

}  // namespace
