// Logarithms and exponentials of whole vectors, and the loads and stores of a row's vectors, of
// which the last may be a part; under one instruction set: see native_common.h.

typedef unsigned FloatBits __attribute__((vector_size(64)));
typedef uint64_t DoubleBits __attribute__((vector_size(64)));
template <class T>
struct Bits;
template <>
struct Bits<float> {
    typedef FloatBits Of;
};
template <>
struct Bits<double> {
    typedef DoubleBits Of;
};

// log x for x > 0, given x - 1 as it was before rounding: relatively exact near 1.
template <class T>
INLINE typename Vector<T>::Of logarithm(typename Vector<T>::Of x, typename Vector<T>::Of less) {
    typedef typename Vector<T>::Of V;
    typedef typename Vector<T>::Mask M;
    typedef Format<T> F;
    M bit;
    memcpy(&bit, &x, sizeof x);
    M scale = (bit >> F::mantissa) - F::bias;
    const M one = M{} + 1;
    bit = (bit & ((one << F::mantissa) - 1)) | (one * F::bias << F::mantissa);
    V m;
    memcpy(&m, &bit, sizeof m);
    const M low = m < (T)0.70710678118654752;
    m = low ? m + m : m;
    scale += low;
    const V f = scale == 0 ? less : m - 1, s = f / (f + 2), s2 = s * s;
    V series = V{} + (T)(1.0 / (2 * F::log_terms + 1));
    for (int k = F::log_terms - 1; k >= 0; --k) series = series * s2 + (T)(1.0 / (2 * k + 1));
    return __builtin_convertvector(scale, V) * (T)0.69314718055994531 + 2 * s * series;
}

constexpr double OVER_FACTORIAL[] = {
    1.0, 1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320,
    1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800,
    1.0 / 87178291200, 1.0 / 1307674368000, 1.0 / 20922789888000,
};

// exp(y), and 0 where it would be denormal: such numbers are slow.
template <class T>
INLINE typename Vector<T>::Of exponential(typename Vector<T>::Of y) {
    typedef typename Vector<T>::Of V;
    typedef typename Vector<T>::Mask M;
    typedef Format<T> F;
    const V in_twos = y * (T)1.4426950408889634;
    const M gone = in_twos < F::least;
    const V shifted = (gone ? V{} : in_twos) + F::round, whole = shifted - F::round;
    // The logarithm of 2 in two parts, so that the difference is exact.
    const T near = sizeof(T) == 4 ? (T)0x1.62e4p-1 : (T)0x1.62e42fefa0000p-1;
    const T rest = (T)(sizeof(T) == 4 ? 0x1.7f7d1cf79abcap-20 : 0x1.cf79abc9e3b3ap-40);
    const V part = (gone ? V{} : y) - whole * near - whole * rest;
    V e = V{} + (T)OVER_FACTORIAL[F::exponential_terms];
    for (int k = F::exponential_terms - 1; k >= 0; --k) e = e * part + (T)OVER_FACTORIAL[k];
    M power, result;
    memcpy(&power, &shifted, sizeof power);
    memcpy(&result, &e, sizeof e);
    result += power << F::mantissa;
    memcpy(&e, &result, sizeof e);
    return gone ? V{} : e;
}

// The scores from i on, padded with -inf at the end of the row; `store_some` leaves padding out.
template <class T>
INLINE typename Vector<T>::Of load_some(const T *x, long i, long n) {
    return i + Vector<T>::size <= n ? Load<T, T>::from(x + i) : load_part<T, T>(x + i, n - i);
}

template <class T>
INLINE void store_some(T *out, long i, long n, typename Vector<T>::Of v) {
    if (i + Vector<T>::size <= n)
        store<T>(out + i, v);
    else
        store_part<T>(out + i, v, n - i);
}
