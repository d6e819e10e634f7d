// The instruction sets for which a module is compiled, and the choice among them at run time.
//
// Headers of kernels, which say "under one instruction set", are compiled once for each of these
// sets: native_dispatch.h has the rules for them. This header is an ordinary one, which the source
// of each module includes first.

#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

// For the headers of kernels, which are compiled inside namespaces and so cannot include them.
#include <math.h>
#include <stdint.h>
#include <string.h>

// Clang compiles the first set alone: the attributes in native_dispatch.h are GCC's.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define ENTMAX_X86_SETS 1
#include <immintrin.h>
#endif

// The numbers by which Python and ENTMAX_SET name the sets. The first is what every processor of an
// architecture has, such as SSE2 on x86-64.
#define ENTMAX_ANY_PROCESSOR 1
#define ENTMAX_AVX2 2
#define ENTMAX_AVX512 3

namespace {

// The set in use. Each module has its own, as each is compiled from a single source file.
int instruction_set = ENTMAX_ANY_PROCESSOR;

// Returns the best set of this processor. It must have all extensions that the attributes in
// native_dispatch.h name: a virtual machine may have AVX2 and hide BMI, for example, and the first
// instruction that it lacks would end the process.
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

// The function of the same name in each Python module, with which tests try every set. It takes the
// number of a set, by default that of the best, and returns it.
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
