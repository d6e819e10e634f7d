// Vectors of scores, their loads, stores and reductions, under one instruction set: see
// native_dispatch.h.
//
// Vectors are an extension of GCC and Clang; the compiler splits them if registers are smaller. No
// template of the standard library is used: the linker keeps one copy of its code, which might be
// that for another instruction set.
//
//     a vector                 loaded by            stored by
//     in memory                `Load<C, T>::from`   `store`
//     of a row, from i on      `load_at`            `store_at`
//     the last one of a row    `load_part`
//
// Template parameters: T is the type in memory, C the type of the vector's lanes.

// Vectors are as wide as the registers of AVX-512.
const int VECTOR_BYTES = 64;
const long FLOAT_LANES = VECTOR_BYTES / sizeof(float);
const long DOUBLE_LANES = VECTOR_BYTES / sizeof(double);

typedef float Floats __attribute__((vector_size(VECTOR_BYTES)));
typedef double Doubles __attribute__((vector_size(VECTOR_BYTES)));
// Comparisons give masks: -1 in lanes where they hold, else 0.
typedef int FloatMask __attribute__((vector_size(VECTOR_BYTES)));
typedef int64_t DoubleMask __attribute__((vector_size(VECTOR_BYTES)));

template <class T>
struct Vector;
template <>
struct Vector<float> {
    typedef Floats Type;
    typedef FloatMask Mask;
    static const long size = FLOAT_LANES;
};
template <>
struct Vector<double> {
    typedef Doubles Type;
    typedef DoubleMask Mask;
    static const long size = DOUBLE_LANES;
};

// So many numbers of a row are added lane by lane, 64 in each, before the sum of the lanes is added
// to a float64: in float32, longer sums would lose digits.
template <class T>
constexpr long CHUNK = 64 * Vector<T>::size;

// ---- loads and stores ------------------------------------------------------------------------

// Loads scores of type T as a vector of type C: the same, or float64 from float32.
template <class C, class T>
struct Load;
template <class C>
struct Load<C, C> {
    static INLINE typename Vector<C>::Type from(const C *x) {
        typename Vector<C>::Type v;
        memcpy(&v, x, sizeof v);
        return v;
    }
};
template <>
struct Load<double, float> {
    static INLINE Doubles from(const float *x) {
        typedef float HalfOfFloats __attribute__((vector_size(VECTOR_BYTES / 2)));
        HalfOfFloats v;
        memcpy(&v, x, sizeof v);
        return __builtin_convertvector(v, Doubles);
    }
};

// Loads the last `count` scores of a row, fewer than a vector, padded with -inf.
template <class C, class T>
INLINE typename Vector<C>::Type load_part(const T *x, long count) {
    T part[Vector<C>::size];
    for (long lane = 0; lane < Vector<C>::size; ++lane)
        part[lane] = lane < count ? x[lane] : -(T)INFINITY;
    return Load<C, T>::from(part);
}

// Loads the scores of a row (n,) from i on, padded with -inf at its end.
template <class C, class T>
INLINE typename Vector<C>::Type load_at(const T *x, long i, long n) {
    return i + Vector<C>::size <= n ? Load<C, T>::from(x + i) : load_part<C, T>(x + i, n - i);
}

// Stores a whole vector.
template <class T>
INLINE void store(T *out, typename Vector<T>::Type v) {
    memcpy(out, &v, sizeof v);
}

// Stores a vector in a row (n,) from i on, without the lanes that are beyond its end.
template <class T>
INLINE void store_at(T *out, long i, long n, typename Vector<T>::Type v) {
    if (i + Vector<T>::size <= n)
        store<T>(out + i, v);
    else
        memcpy(out + i, &v, (n - i) * sizeof(T));
}

// ---- reductions ------------------------------------------------------------------------------

// Half and a quarter of a vector. Reductions fold a vector to these, and then take single lanes.
template <class T>
struct Halves {
    typedef T Half __attribute__((vector_size(VECTOR_BYTES / 2)));
    typedef T Quarter __attribute__((vector_size(VECTOR_BYTES / 4)));
};

// The sum of the lanes. It adds lanes far apart first, in the same order under every instruction
// set, so that all of them give the same bits.
template <class T>
INLINE double sum_of(typename Vector<T>::Type v) {
    typename Halves<T>::Half half[2];
    memcpy(half, &v, sizeof v);
    half[0] += half[1];
    typename Halves<T>::Quarter quarter[2];
    memcpy(quarter, half, sizeof quarter);
    const typename Halves<T>::Quarter last = quarter[0] + quarter[1];
    const int lanes = sizeof last / sizeof(T);
    double total = 0;
    for (int lane = 0; lane < lanes / 2; ++lane) total += last[lane] + last[lane + lanes / 2];
    return total;
}

// The largest lane. It may miss a nan, which `Maximum` of native_candidates.h finds.
template <class T>
INLINE T largest_of(typename Vector<T>::Type v) {
    typename Halves<T>::Half half[2];
    memcpy(half, &v, sizeof v);
    half[0] = half[1] > half[0] ? half[1] : half[0];
    typename Halves<T>::Quarter quarter[2];
    memcpy(quarter, half, sizeof quarter);
    const typename Halves<T>::Quarter last = quarter[1] > quarter[0] ? quarter[1] : quarter[0];
    T largest = last[0];
    for (unsigned lane = 1; lane < sizeof last / sizeof(T); ++lane)
        largest = last[lane] > largest ? last[lane] : largest;
    return largest;
}

// The lanes in which a comparison holds, as bits: the lowest bit is that of lane 0.
#if ENTMAX_SET == ENTMAX_AVX512
INLINE unsigned bits(FloatMask m) { return _mm512_movepi32_mask((__m512i)m); }
INLINE unsigned bits(DoubleMask m) { return _mm512_movepi64_mask((__m512i)m); }
#elif ENTMAX_SET == ENTMAX_AVX2
INLINE unsigned bits(FloatMask m) {
    __m256 half[2];
    memcpy(half, &m, sizeof m);
    return _mm256_movemask_ps(half[0]) | _mm256_movemask_ps(half[1]) << 8;
}
INLINE unsigned bits(DoubleMask m) {
    __m256d half[2];
    memcpy(half, &m, sizeof m);
    return _mm256_movemask_pd(half[0]) | _mm256_movemask_pd(half[1]) << 4;
}
#else
template <class M>
INLINE unsigned bits(M m) {
    unsigned lanes = 0;
    for (unsigned lane = 0; lane < sizeof m / sizeof m[0]; ++lane) lanes |= (m[lane] & 1u) << lane;
    return lanes;
}
#endif
