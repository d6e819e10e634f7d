// Vectors of scores and their powers, under one instruction set: see native_common.h.
//
// The vectors are GCC's and Clang's, 64 bytes wide; the compiler splits them for smaller registers.
// No template of the standard library is used: the linker might use its code of one instruction set
// under another.

typedef float Floats __attribute__((vector_size(64)));
typedef double Doubles __attribute__((vector_size(64)));
typedef int FloatMask __attribute__((vector_size(64)));
typedef int64_t DoubleMask __attribute__((vector_size(64)));

template <class T>
struct Vector;
template <>
struct Vector<float> {
    typedef Floats Of;
    typedef FloatMask Mask;
    static const long size = 16;
};
template <>
struct Vector<double> {
    typedef Doubles Of;
    typedef DoubleMask Mask;
    static const long size = 8;
};

// Loads scores of type T as a vector of type C.
template <class C, class T>
struct Load;
template <class C>
struct Load<C, C> {
    static INLINE typename Vector<C>::Of from(const C *x) {
        typename Vector<C>::Of v;
        memcpy(&v, x, sizeof v);
        return v;
    }
};
template <>
struct Load<double, float> {
    static INLINE Doubles from(const float *x) {
        typedef float Eight __attribute__((vector_size(32)));
        Eight v;
        memcpy(&v, x, sizeof v);
        return __builtin_convertvector(v, Doubles);
    }
};

// The last scores of a row, padded with -inf.
template <class C, class T>
INLINE typename Vector<C>::Of load_part(const T *x, long count) {
    T part[Vector<C>::size];
    for (long lane = 0; lane < Vector<C>::size; ++lane)
        part[lane] = lane < count ? x[lane] : -(T)INFINITY;
    return Load<C, T>::from(part);
}

template <class T>
INLINE void store(T *out, typename Vector<T>::Of v) {
    memcpy(out, &v, sizeof v);
}

template <class T>
INLINE void store_part(T *out, typename Vector<T>::Of v, long count) {
    memcpy(out, &v, count * sizeof(T));
}

template <class T>
struct Halves {
    typedef T Half __attribute__((vector_size(32)));
    typedef T Quarter __attribute__((vector_size(16)));
};

template <class T>
INLINE double sum_of(typename Vector<T>::Of v) {
    typename Halves<T>::Half half[2];
    memcpy(half, &v, sizeof v);
    half[0] += half[1];
    typename Halves<T>::Quarter quarter[2];
    memcpy(quarter, half, sizeof quarter);
    const typename Halves<T>::Quarter last = quarter[0] + quarter[1];
    const int lanes = 16 / sizeof(T);
    double total = 0;
    for (int lane = 0; lane < lanes / 2; ++lane) total += last[lane] + last[lane + lanes / 2];
    return total;
}

template <class T>
INLINE T largest_of(typename Vector<T>::Of v) {
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

// One bit for each lane in which a comparison holds.
#if ENTMAX_SET == 3
INLINE unsigned bits(FloatMask m) { return _mm512_movepi32_mask((__m512i)m); }
INLINE unsigned bits(DoubleMask m) { return _mm512_movepi64_mask((__m512i)m); }
#elif ENTMAX_SET == 2
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
    unsigned found = 0;
    for (unsigned lane = 0; lane < sizeof m / sizeof m[0]; ++lane) found |= (m[lane] & 1u) << lane;
    return found;
}
#endif

// ---- powers ----------------------------------------------------------------------------------

// The layout of a float type, and the terms of its powers: exact to about 1e-15 in float64, to the
// last places in float32.
template <class T>
struct Format;
template <>
struct Format<double> {
    static const int mantissa = 52, bias = 1022, log_terms = 10, exponential_terms = 14;
    static constexpr double least = -1020, round = 0x1.8p52;
};
template <>
struct Format<float> {
    static const int mantissa = 23, bias = 126, log_terms = 4, exponential_terms = 7;
    static constexpr float least = -125, round = 0x1.8p23;
};

// 2 ** y by its series, for y below the largest exponent.
template <class T>
INLINE typename Vector<T>::Of power_of_two(typename Vector<T>::Of y) {
    typedef typename Vector<T>::Of V;
    typedef typename Vector<T>::Mask M;
    typedef Format<T> F;
    y = y < F::least ? V{} + F::least : y;
    // y = whole + part, part in [-1/2, 1/2]: adding 1.5 * 2 ** mantissa rounds.
    const V shifted = y + F::round, part = (y - (shifted - F::round)) * (T)0.69314718055994531;
    V e = V{} + 1;
    for (int k = F::exponential_terms; k >= 1; --k) e = e * (part * (T)(1.0 / k)) + 1;
    M whole, result;
    memcpy(&whole, &shifted, sizeof whole);
    memcpy(&result, &e, sizeof e);
    result += whole << F::mantissa;
    memcpy(&e, &result, sizeof e);
    return e;
}

// (x / 2 ** lift) ** exponent for x > 0, by the series of its binary logarithm.
template <class T>
INLINE typename Vector<T>::Of power_by_series(typename Vector<T>::Of x, T exponent, int lift = 0) {
    typedef typename Vector<T>::Of V;
    typedef typename Vector<T>::Mask M;
    typedef Format<T> F;
    M bit;
    memcpy(&bit, &x, sizeof x);
    M scale = (bit >> F::mantissa) - (F::bias + lift);
    const M one = M{} + 1;
    bit = (bit & ((one << F::mantissa) - 1)) | (one * F::bias << F::mantissa);
    V m;
    memcpy(&m, &bit, sizeof m);
    // The mantissa in [sqrt(1/2), sqrt(2)); its logarithm is that of (1 + s) / (1 - s).
    const M low = m < (T)0.70710678118654752;
    m = low ? m + m : m;
    scale += low;
    const V s = (m - 1) / (m + 1), s2 = s * s;
    V series = V{} + (T)(1.0 / (2 * F::log_terms + 1));
    for (int k = F::log_terms - 1; k >= 0; --k) series = series * s2 + (T)(1.0 / (2 * k + 1));
    const V logs = series * s * (T)2.8853900817779268 + __builtin_convertvector(scale, V);
    return power_of_two<T>(logs * exponent);
}

// Powers x ** exponent for x > 0, exact enough for scores of type S; meaningless at 0.
template <class S>
INLINE Doubles power_any(Doubles x, double exponent) {
    if (sizeof(S) == 4) return power_by_series<double>(x, exponent);
    for (int lane = 0; lane < 8; ++lane) x[lane] = x[lane] > 0 ? pow(x[lane], exponent) : 0.0;
    return x;
}
template <class S>
INLINE Floats power_any(Floats x, double exponent) {
    return power_by_series<float>(x, (float)exponent);
}

// base ** whole for base >= 0 and whole >= 0, with 0 ** 0 = 0 outside the support.
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

// The orders that loops are compiled for: 1 and 2 (alpha 2 and 1.5), other whole ones, any.
enum { ONE = 1, TWO = 2, WHOLE = 0, ANY = -1 };

// base ** (order - less) for base >= 0, less 0 or 1; 0 for 0.
template <class S, int form, class V>
INLINE V power(V base, const Curve &curve, int less) {
    if (form == ONE) return less ? power_whole(base, 0) : base;
    if (form == TWO) return less ? base : base * base;
    if (form == WHOLE) return power_whole(base, curve.whole - less);
    const V result = power_any<S>(base, curve.order - less);
    return base > 0 ? result : V{};
}
