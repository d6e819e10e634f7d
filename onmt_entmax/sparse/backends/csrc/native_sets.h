// Compiles ENTMAX_BODY for each instruction set, and chooses among them: see
// native_instruction_sets.h.

namespace {

namespace any_processor {
#define ENTMAX_SET ENTMAX_ANY_PROCESSOR
#define TARGET
#include ENTMAX_BODY
#undef ENTMAX_SET
#undef TARGET
}  // namespace any_processor

#ifdef ENTMAX_SETS
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

// The functions of the instruction set that is used.
template <class T>
const Kernels *kernels() {
#ifdef ENTMAX_SETS
    if (instruction_set == ENTMAX_AVX512) return with_avx512::kernels<T>();
    if (instruction_set == ENTMAX_AVX2) return with_avx2::kernels<T>();
#endif
    return any_processor::kernels<T>();
}

}  // namespace
