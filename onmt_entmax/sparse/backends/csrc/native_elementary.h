// Logarithms, exponentials and powers of vectors, under one instruction set: see native_dispatch.h.
// `Curve` and `Form` are those of native_curve.h, which native.cpp and lstm.cpp include before.
//
// All are computed by series. Their relative errors, in units of the machine epsilon (2^-52 or
// 2^-23), were measured against `long double` for a few million random arguments; none was larger
// than
//
//                         error                       arguments, float64     float32
//     `logarithm`         2.3                         from 2^-1022           from 2^-126
//     `exponential`       1                           -707 to 709            -86.6 to 88
//     `power_of_two`      1                           -1020 to 1023          -125 to 127
//     `power_by_series`   2 + |log2 of the result|    results of 2^-1020     2^-125 to 2^127
//                                                     to 2^1023

#include "sparse/backends/csrc/native_vectors.h"

constexpr double LOG_2 = 0.69314718055994531, LOG2_E = 1.4426950408889634;
constexpr double SQRT_HALF = 0.70710678118654752;

// 1 / k!, for k from 0 on.
constexpr double OVER_FACTORIAL[] = {
    1.0, 1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320,
    1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800,
    1.0 / 87178291200, 1.0 / 1307674368000, 1.0 / 20922789888000,
};

// The layout of a floating-point type, and the lengths of its series, whose first omitted terms are
// below the machine epsilon.
template <class T>
struct Format;
template <>
struct Format<double> {
    static const int mantissa_bits = 52;
    static const int bias = 1022;  // of the exponent of a mantissa in [1/2, 1)
    static const int log_terms = 10, exponential_terms = 14;
    static constexpr double lowest_exponent = -1020;  // 2^-1022 is the smallest normal number
    static constexpr double round = 0x1.8p52;         // x + round - round is x rounded to integers
};
template <>
struct Format<float> {
    static const int mantissa_bits = 23;
    static const int bias = 126;
    static const int log_terms = 4, exponential_terms = 7;
    static constexpr float lowest_exponent = -125;
    static constexpr float round = 0x1.8p23;
};

// ---- logarithms ------------------------------------------------------------------------------

// x = mantissa * 2 ** exponent, with a mantissa in [sqrt(1/2), sqrt(2)). So numbers near 1 have the
// exponent 0, and their logarithm is that of the mantissa.
template <class T>
struct Split {
    typename Vector<T>::Type mantissa;
    typename Vector<T>::Mask exponent;

    // For x > 0.
    static INLINE Split of(typename Vector<T>::Type x) {
        typedef typename Vector<T>::Mask M;
        typedef Format<T> F;
        M bit;
        memcpy(&bit, &x, sizeof x);
        M exponent = (bit >> F::mantissa_bits) - F::bias;
        const M one = M{} + 1;
        bit = (bit & ((one << F::mantissa_bits) - 1)) | (one * F::bias << F::mantissa_bits);
        typename Vector<T>::Type mantissa;
        memcpy(&mantissa, &bit, sizeof mantissa);
        const M low = mantissa < (T)SQRT_HALF;  // -1 where it holds
        return {low ? mantissa + mantissa : mantissa, exponent + low};
    }
};

// log((1 + s) / (1 - s)) / (2 s) = 1 + s^2 / 3 + s^4 / 5 + ...
template <class T>
INLINE typename Vector<T>::Type log_series(typename Vector<T>::Type s) {
    typedef typename Vector<T>::Type V;
    const int terms = Format<T>::log_terms;
    const V s2 = s * s;
    V series = V{} + (T)(1.0 / (2 * terms + 1));
    for (int k = terms - 1; k >= 0; --k) series = series * s2 + (T)(1.0 / (2 * k + 1));
    return series;
}

// log x for x > 0. `x_minus_1` is x - 1 before x was rounded, if the caller has computed x from it:
// then this is log1p(x_minus_1). A caller that has only x passes x - 1, which is exact near 1.
template <class T>
INLINE typename Vector<T>::Type logarithm(typename Vector<T>::Type x,
                                          typename Vector<T>::Type x_minus_1) {
    typedef typename Vector<T>::Type V;
    const Split<T> split = Split<T>::of(x);
    const V f = split.exponent == 0 ? x_minus_1 : split.mantissa - 1, s = f / (f + 2);
    return __builtin_convertvector(split.exponent, V) * (T)LOG_2 + 2 * s * log_series<T>(s);
}

// ---- exponentials ----------------------------------------------------------------------------

// x * 2 ** whole, given `shifted` = whole + Format<T>::round, whose lowest bits are those of whole.
template <class T>
INLINE typename Vector<T>::Type scaled(typename Vector<T>::Type x,
                                       typename Vector<T>::Type shifted) {
    typename Vector<T>::Mask bits, whole;
    memcpy(&bits, &x, sizeof x);
    memcpy(&whole, &shifted, sizeof shifted);
    bits += whole << Format<T>::mantissa_bits;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// exp(y), but 0 where that would be a denormal number: those are slow.
template <class T>
INLINE typename Vector<T>::Type exponential(typename Vector<T>::Type y) {
    typedef typename Vector<T>::Type V;
    typedef Format<T> F;
    const V in_twos = y * (T)LOG2_E;
    const typename Vector<T>::Mask too_low = in_twos < F::lowest_exponent;
    const V shifted = (too_low ? V{} : in_twos) + F::round, whole = shifted - F::round;
    // The logarithm of 2 in two parts, so that `whole * high` and its difference to y are exact.
    const T high = sizeof(T) == 4 ? (T)0x1.62e4p-1 : (T)0x1.62e42fefa0000p-1;
    const T low = (T)(sizeof(T) == 4 ? 0x1.7f7d1cf79abcap-20 : 0x1.cf79abc9e3b3ap-40);
    const V part = (too_low ? V{} : y) - whole * high - whole * low;
    V e = V{} + (T)OVER_FACTORIAL[F::exponential_terms];
    for (int k = F::exponential_terms - 1; k >= 0; --k) e = e * part + (T)OVER_FACTORIAL[k];
    return too_low ? V{} : scaled<T>(e, shifted);
}

// 2 ** y. A y below the lowest exponent is raised to it: the result is nearly 0.
template <class T>
INLINE typename Vector<T>::Type power_of_two(typename Vector<T>::Type y) {
    typedef typename Vector<T>::Type V;
    typedef Format<T> F;
    y = y < F::lowest_exponent ? V{} + F::lowest_exponent : y;
    const V shifted = y + F::round, part = (y - (shifted - F::round)) * (T)LOG_2;
    V e = V{} + 1;
    for (int k = F::exponential_terms; k >= 1; --k) e = e * (part * (T)(1.0 / k)) + 1;
    return scaled<T>(e, shifted);
}

// ---- powers ----------------------------------------------------------------------------------

// (x / 2 ** lift) ** exponent for x > 0; meaningless at 0.
template <class T>
INLINE typename Vector<T>::Type power_by_series(typename Vector<T>::Type x, T exponent,
                                                int lift = 0) {
    typedef typename Vector<T>::Type V;
    const Split<T> split = Split<T>::of(x);
    const V s = (split.mantissa - 1) / (split.mantissa + 1);
    const V logs =
        log_series<T>(s) * s * (T)(2 * LOG2_E) + __builtin_convertvector(split.exponent - lift, V);
    return power_of_two<T>(logs * exponent);
}

// x ** exponent for x > 0, in the precision that scores of type S need; meaningless at 0. For
// float64 scores `pow` computes it, since the series would be wrong in the last digits. Float32
// results do not show that error.
template <class S>
INLINE Doubles power_any(Doubles x, double exponent) {
    if (sizeof(S) == 4) return power_by_series<double>(x, exponent);
    for (int lane = 0; lane < DOUBLE_LANES; ++lane)
        x[lane] = x[lane] > 0 ? pow(x[lane], exponent) : 0.0;
    return x;
}
template <class S>
INLINE Floats power_any(Floats x, double exponent) {
    return power_by_series<float>(x, (float)exponent);
}

// base ** whole for base >= 0 and whole >= 0. Here 0 ** 0 is 0: a score outside the support has
// base 0, and must add nothing to a sum.
template <class V>
INLINE V power_whole(V base, int whole) {
    if (whole == 1) return base;
    if (whole == 2) return base * base;
    const V none = V{}, ones = none + 1;
    V result = base > 0 ? ones : none;
    for (; whole; whole >>= 1, base *= base)
        if (whole & 1) result *= base;
    return result;
}

// base ** order for base >= 0; `form` must be that of the curve. See `power_any` for S.
template <class S, Form form, class V>
INLINE V power(V base, const Curve &curve) {
    if (form == ONE) return base;
    if (form == TWO) return base * base;
    if (form == WHOLE) return power_whole(base, curve.whole);
    const V result = power_any<S>(base, curve.order);
    return base > 0 ? result : V{};
}

// base ** (order - 1), which is the derivative of `power` but for a factor; 0 for base 0.
template <class S, Form form, class V>
INLINE V power_below(V base, const Curve &curve) {
    if (form == ONE) return power_whole(base, 0);
    if (form == TWO) return base;
    if (form == WHOLE) return power_whole(base, curve.whole - 1);
    const V result = power_any<S>(base, curve.order - 1);
    return base > 0 ? result : V{};
}
