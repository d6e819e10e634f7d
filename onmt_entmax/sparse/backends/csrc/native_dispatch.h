// Compiles a header of kernels for each instruction set, and picks one of the results at run time.
//
// The file that includes this one must have, before:
//   - included native_instruction_sets.h, which has `instruction_set` and the macros used here;
//   - defined a struct `Kernels`, the table of a module's functions;
//   - defined ENTMAX_BODY as the path of the header of kernels. That header defines
//     `template <class T> const Kernels *kernels()`, the functions for scores of type T.
//
// After it, `kernels<T>()` returns the functions of the instruction set in use.

#ifndef ENTMAX_BODY
#error "define ENTMAX_BODY as the path of the header of kernels"
#endif

namespace {

namespace any_processor {
#define ENTMAX_SET ENTMAX_ANY_PROCESSOR
#define TARGET
#include ENTMAX_BODY
#undef ENTMAX_SET
#undef TARGET
}  // namespace any_processor

#ifdef ENTMAX_X86_SETS
namespace with_avx2 {
#define ENTMAX_SET ENTMAX_AVX2
#define TARGET __attribute__((target("avx2,fma,bmi")))
#include ENTMAX_BODY
#undef ENTMAX_SET
#undef TARGET
}  // namespace with_avx2

namespace with_avx512 {
#define ENTMAX_SET ENTMAX_AVX512
#define TARGET \
    __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,fma,bmi,prefer-vector-width=512")))
#include ENTMAX_BODY
#undef ENTMAX_SET
#undef TARGET
}  // namespace with_avx512
#endif

template <class T>
const Kernels *kernels() {
#ifdef ENTMAX_X86_SETS
    if (instruction_set == ENTMAX_AVX512) return with_avx512::kernels<T>();
    if (instruction_set == ENTMAX_AVX2) return with_avx2::kernels<T>();
#endif
    return any_processor::kernels<T>();
}

}  // namespace
