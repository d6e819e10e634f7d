// The processor's instruction sets: which there are, and which one a module uses.
//
// The headers of kernels are those that say "under one instruction set". native_dispatch.h includes
// them three times, each time in another namespace and for another instruction set; the best one
// that the processor has runs. So they have no include guards, and a module includes each of them
// in one place. They use TARGET, the attribute that compiles a function for the instruction set,
// and INLINE.

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define ENTMAX_X86_SETS 1
#include <immintrin.h>
#endif

// Instruction sets; the numbers are those of `use_instruction_set`. While a header is compiled for
// one of them, ENTMAX_SET is its number.
#define ENTMAX_ANY_PROCESSOR 1
#define ENTMAX_AVX2 2
#define ENTMAX_AVX512 3

// A small function of a kernel. It needs TARGET although a function with TARGET calls it: templates
// are instantiated at the end of the file, apart from their callers.
#define INLINE inline __attribute__((always_inline)) TARGET

namespace {

// The instruction set in use. Python may change it, for tests.
int instruction_set = ENTMAX_ANY_PROCESSOR;

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

// Called once by each module, when Python loads it.
void use_best_instruction_set() { instruction_set = best_instruction_set(); }

// Takes the number of an instruction set, by default of the best, and returns it.
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
