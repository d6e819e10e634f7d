// Compiles a header of kernels for each instruction set, and picks one of the results at run time.
//
// The file that includes this one must have, before:
//   - included native_instruction_sets.h, which has `instruction_set` and the numbers of the sets;
//   - defined a struct `Kernels`, the table of a module's functions;
//   - defined ENTMAX_BODY as the path of the header of kernels. That header defines
//     `template <class T> const Kernels *kernels()`, the functions for scores of type T.
//
// After it, `kernels<T>()` returns the functions of the instruction set in use.
//
// ENTMAX_BODY and the headers that it includes are those whose first lines say "under one
// instruction set". They are compiled three times, each time in another namespace. So they have no
// include guards, include no system headers, and include each other only once in a module. In them,
//   - ENTMAX_SET is the number of the instruction set;
//   - TARGET is the attribute that compiles a function for it;
//   - INLINE is for small functions that others call.

#ifndef ENTMAX_BODY
#error "define ENTMAX_BODY as the path of the header of kernels"
#endif

// INLINE includes TARGET, although the callers of these functions have TARGET: templates are
// instantiated at the end of the file, apart from their callers.
#define INLINE inline __attribute__((always_inline)) TARGET

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
