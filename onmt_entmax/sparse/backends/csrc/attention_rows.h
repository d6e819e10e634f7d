// Rows of attention weights and their gradients, under one instruction set: see native_common.h.
//
// A row of scores x with maximum m becomes p = (beta [x - m - t]_+)^(1/beta), beta = alpha - 1, with
// the threshold t for which the sum is 1 (solvers.py has the derivation). Newton's method finds it
// in the type of the scores: at alpha 1.5 and 2 by the powers of native_threshold.h, between 1 and 2
// in logarithms, which stay exact as beta goes to 0:
//
//     log p = log1p(beta (x - m - s)) / beta,  s = t + 1 / beta;
//
// above 2 the solver of native_threshold.h does all in float64.

#include "sparse/backends/csrc/native_row.h"

// ---- logarithms and exponentials -------------------------------------------------------------

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

// ---- weights ---------------------------------------------------------------------------------

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

// Booleans of a mask, for the lanes of a vector.
template <class T>
INLINE typename Vector<T>::Mask load_booleans(const uint8_t *given, long count) {
    typedef uint8_t Bytes __attribute__((vector_size(Vector<T>::size)));
    Bytes bytes = {};
    memcpy(&bytes, given, count < Vector<T>::size ? count : Vector<T>::size);
    return __builtin_convertvector(bytes, typename Vector<T>::Mask) != 0;
}

// Scale and mask a row; return its maximum, nan if a score is nan.
template <class T, int kind>
TARGET T prepare_in(T *x, long n, T scale, const void *mask) {
    typedef typename Vector<T>::Of V;
    const V least = V{} - (T)INFINITY;
    V largest = least;
    typename Vector<T>::Mask broken = {};
    for (long i = 0; i < n; i += Vector<T>::size) {
        V v = load_some(x, i, n) * scale;
        if (kind == BOOLEANS) v = load_booleans<T>((const uint8_t *)mask + i, n - i) ? v : least;
        if (kind == NUMBERS) v += load_some((const T *)mask, i, n);
        store_some(x, i, n, v);
        // Beyond the row -inf again, which a scale of 0 or below has changed.
        if (i + Vector<T>::size > n) v = load_some(x, i, n);
        largest = v > largest ? v : largest;
        broken |= v != v;
    }
    return bits(broken) ? (T)NAN : largest_of<T>(largest);
}

template <class T>
INLINE T prepare(T *x, long n, T scale, int64_t kind, const void *mask) {
    if (kind == BOOLEANS) return prepare_in<T, BOOLEANS>(x, n, scale, mask);
    if (kind == NUMBERS) return prepare_in<T, NUMBERS>(x, n, scale, mask);
    return prepare_in<T, NO_MASK>(x, n, scale, mask);
}

template <class T>
TARGET void softmax(T *x, long n, T maximum) {
    typename Vector<T>::Of sums = {};
    for (long i = 0; i < n; i += Vector<T>::size) {
        const auto e = exponential<T>(load_some(x, i, n) - maximum);
        sums += e;
        store_some(x, i, n, e);
    }
    const T factor = (T)(1 / sum_of<T>(sums));
    for (long i = 0; i < n; i += Vector<T>::size) store_some(x, i, n, load_some(x, i, n) * factor);
}

// Powers of 1 + u = 1 + beta (x - maximum - shift), 0 outside the support.
template <class T>
struct Power {
    typename Vector<T>::Of base, p;
};
template <class T>
INLINE Power<T> power_of(typename Vector<T>::Of below, T near, T rest, T beta, T order) {
    typedef typename Vector<T>::Of V;
    const V u = ((below - near) - rest) * beta, base = 1 + u;
    const V p = exponential<T>(logarithm<T>(base, u) * order);
    return {base, base > 0 ? p : V{}};
}

// Entmax of a row for alpha between 1 and 2, in logarithms.
template <class T>
TARGET void in_logarithms(T *x, long n, T maximum, const Curve &curve) {
    typedef typename Vector<T>::Of V;
    const T beta = (T)curve.beta, order = (T)curve.order;
    const double enough = short_step<T>(n, curve);
    double shift = 0;
    for (int step = 0; step < 100; ++step) {
        V total = {}, slope = {};
        const T near = (T)shift, rest = (T)(shift - (double)near);
        for (long i = 0; i < n; i += Vector<T>::size) {
            const Power<T> found = power_of<T>(load_some(x, i, n) - maximum, near, rest, beta, order);
            total += found.p;
            slope += found.p > 0 ? found.p / found.base : V{};
        }
        const double sum = sum_of<T>(total);
        const double rise = -sum * expm1(-curve.beta * log(sum)) / (curve.beta * sum_of<T>(slope));
        shift += rise;
        if (!(rise > enough)) break;
    }
    const T near = (T)shift, rest = (T)(shift - (double)near);
    for (long i = 0; i < n; i += Vector<T>::size) {
        const V below = load_some(x, i, n) - maximum;
        store_some(x, i, n, power_of<T>(below, near, rest, beta, order).p);
    }
}

template <class T>
TARGET void solve_row(T *x, long n, T maximum, const Curve &curve, Room<T> room) {
    if (maximum == -INFINITY) {
        memset(x, 0, n * sizeof(T));
    } else if (!(maximum < INFINITY)) {
        for (long i = 0; i < n; ++i) x[i] = (T)NAN;
    } else if (curve.beta == 0) {
        softmax(x, n, maximum);
    } else if (curve.beta > 1) {
        write_solved(x, n, solve(x, n, curve, room), room, curve, x);
    } else if (curve.whole < 0) {
        in_logarithms(x, n, maximum, curve);
    } else {
        Totals last;
        double before;
        const double threshold = climb<T, T>(x, n, maximum, -curve.order, curve,
                                             short_step<T>(n, curve), 100, last, before);
        write_row(x, n, maximum, threshold, (T)1, curve, x);
    }
}

INLINE uint64_t mixed(uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

// Make the weights negative that dropout drops, and write the others, enlarged, to ``used``.
template <class T>
TARGET void drop(T *weights, T *used, long n, uint64_t key, double part) {
    typedef typename Vector<T>::Of V;
    typedef typename Bits<T>::Of B;
    const T enlarged = (T)(part < 1 ? 1 / (1 - part) : 0);
    const unsigned limit = (unsigned)(part * 0x1p24 + 0.5);
    B lane;
    for (long at = 0; at < Vector<T>::size; ++at) lane[at] = at;
    const B low = B{} + 0xffffffffu;
    for (long i = 0; i < n; i += Vector<T>::size) {
        // A hash of 32 bits, of which 24 decide.
        B hash = (lane + (unsigned)i) * 0x9e3779b9u + (unsigned)key;
        hash = hash & low, hash = (hash ^ hash >> 16) * 0x7feb352du;
        hash = hash & low, hash = (hash ^ hash >> 15) * 0x846ca68bu;
        hash = hash & low, hash = (hash ^ hash >> 16) + (unsigned)(key >> 32);
        hash = hash & low, hash = (hash ^ hash >> 16) * 0x7feb352du;
        hash = (hash & low) >> 8;
        const typename Vector<T>::Mask dropped = hash < limit;
        const V p = load_some(weights, i, n);
        store_some(weights, i, n, dropped ? -p : p);
        store_some(used, i, n, dropped ? V{} : p * enlarged);
    }
}

// 1 / beta if loops exist for it as a whole number.
INLINE int whole_order(double alpha) { return alpha == 2 ? 1 : alpha == 1.5 ? 2 : -1; }

template <class T>
TARGET void forward(const Heads &heads, long first, long last, Memory &memory) {
    const Room<T> room = room_up_to<T>(heads.keys, memory);
    for (long row = first; row < last; ++row) {
        const long at = row / heads.queries, query = row % heads.queries, head = heads.first + at;
        const double alpha = heads.alpha[head % heads.heads];
        const Curve curve = Curve::of(alpha, whole_order(alpha));
        T *x = (T *)heads.weights + row * heads.keys;
        const void *mask = nullptr;
        if (heads.mask_kind >= BOOLEANS) {
            const long offset = head / heads.heads * heads.mask_outer +
                                head % heads.heads * heads.mask_head + query * heads.mask_row;
            mask = heads.mask + offset * (heads.mask_kind == BOOLEANS ? 1 : sizeof(T));
        }
        long n = heads.keys;
        if (heads.mask_kind == CAUSAL && query + 1 < n) {
            n = query + 1;
            memset(x + n, 0, (heads.keys - n) * sizeof(T));
        }
        solve_row(x, n, prepare(x, n, (T)heads.scale, heads.mask_kind, mask), curve, room);
        if (heads.used)
            drop(x, (T *)heads.used + row * heads.keys, heads.keys,
                 mixed(heads.seed + 0x9e3779b97f4a7c15 * (head * heads.queries + query)),
                 heads.dropped_part);
    }
}

// ---- gradients -------------------------------------------------------------------------------

// (exp(w) - 1 - w) / w ** 2 for w >= 0, given exp(w); by its series near 0.
template <class T>
INLINE typename Vector<T>::Of second_order(typename Vector<T>::Of w, typename Vector<T>::Of e) {
    typedef typename Vector<T>::Of V;
    const auto small = w < (T)0.5;
    const V near = small ? w : V{}, far = small ? V{} + 1 : w;
    const int terms = sizeof(T) == 4 ? 9 : 16;
    V series = V{} + (T)OVER_FACTORIAL[terms];
    for (int n = terms - 1; n >= 2; --n) series = series * near + (T)OVER_FACTORIAL[n];
    return small ? series : (e - 1 - far) / (far * far);
}

template <class T>
INLINE typename Vector<T>::Of square_root(typename Vector<T>::Of p) {
    T lane[Vector<T>::size];
    memcpy(lane, &p, sizeof p);
    for (long at = 0; at < Vector<T>::size; ++at)
        lane[at] = sizeof(T) == 4 ? (T)sqrtf((float)lane[at]) : (T)sqrt((double)lane[at]);
    return Load<T, T>::from(lane);
}

// What the gradients of a row need: Jacobian weights s = p ** (2 - alpha), and p k with the k of
// jacobian.py for the gradient in alpha.
template <class T>
struct Slopes {
    typename Vector<T>::Of s, bend;
};
enum { PLAIN, ROOT, LINEAR, POWERS, POWERS_AND_BEND };

template <class T, int form>
INLINE Slopes<T> slopes_of(typename Vector<T>::Of p, T beta) {
    typedef typename Vector<T>::Of V;
    if (form == LINEAR) return {p > 0 ? V{} + 1 : V{}, V{}};
    if (form == PLAIN) return {p, V{}};
    if (form == ROOT) return {square_root<T>(p), V{}};
    const auto inside = p > 0;
    const V logs = logarithm<T>(p, p - 1);
    if (form == POWERS) {
        const V s = exponential<T>(logs * (1 - beta));
        return {inside ? s : V{}, V{}};
    }
    const V w = logs * -beta, e = exponential<T>(w);
    const V bend = p * logs * logs * second_order<T>(w, e);
    return {inside ? p * e : V{}, inside ? bend : V{}};
}

// The gradient of a row in the scores, in place of that in the weights as used; returns that in
// alpha, where ``form`` asks for it (Correia, Niculae and Martins 2019, Proposition 1).
template <class T, int form>
TARGET double gradient_in(const T *weights, T *used, T *g, T *s, long n, T beta, T enlarged,
                          T scale) {
    typedef typename Vector<T>::Of V;
    V all = {}, along = {}, bends = {}, bent = {};
    for (long i = 0; i < n; i += Vector<T>::size) {
        const bool whole = i + Vector<T>::size <= n;
        V p = {}, v = {};
        memcpy(&p, weights + i, whole ? sizeof p : (n - i) * sizeof(T));
        memcpy(&v, g + i, whole ? sizeof v : (n - i) * sizeof(T));
        if (used) {
            const auto kept = p > 0;
            v = kept ? v * enlarged : V{};
            store_some(g, i, n, v);
            store_some(used, i, n, kept ? p * enlarged : V{});
            p = kept ? p : -p;
        }
        const Slopes<T> slopes = slopes_of<T, form>(p, beta);
        store<T>(s + i, slopes.s);
        all += slopes.s;
        along += slopes.s * v;
        if (form == POWERS_AND_BEND) bends += slopes.bend, bent += slopes.bend * v;
    }
    const double sum = sum_of<T>(all), mean = sum > 0 ? sum_of<T>(along) / sum : 0;
    for (long i = 0; i < n; i += Vector<T>::size) {
        const bool whole = i + Vector<T>::size <= n;
        V v = {};
        memcpy(&v, g + i, whole ? sizeof v : (n - i) * sizeof(T));
        store_some(g, i, n, Load<T, T>::from(s + i) * ((v - (T)mean) * scale));
    }
    return form == POWERS_AND_BEND ? mean * sum_of<T>(bends) - sum_of<T>(bent) : 0;
}

// The same for alpha above 2, where the smallest probability has the largest weight, possibly
// infinite: see _gradient_above_two in jacobian.py.
template <class T>
TARGET double gradient_above_two(const T *weights, T *used, T *g, long n, double beta,
                                 double enlarged, double scale) {
    double least = INFINITY, all = 0, along = 0, bends = 0, bent = 0, others = 0;
    for (long i = 0; i < n; ++i) {
        const double p = fabs((double)weights[i]);
        if (used) {
            const bool kept = weights[i] > 0;
            g[i] = kept ? (T)(g[i] * enlarged) : (T)0;
            used[i] = kept ? (T)(weights[i] * enlarged) : (T)0;
        }
        if (p > 0 && p < least) least = p;
    }
    long smallest = -1;
    for (long i = 0; i < n; ++i) {
        const double p = fabs((double)weights[i]);
        if (!(p > 0)) continue;
        if (p == least && smallest < 0) smallest = i;
        const double share = pow(p / least, 1 - beta), logs = log(p), w = -beta * logs;
        const double bend = p * (w < 1e-4 ? logs * logs * (0.5 + w / 6)
                                          : (expm1(w) - w) / (beta * beta));
        all += share, along += share * g[i];
        bends += bend, bent += bend * g[i];
    }
    const double mean = all > 0 ? along / all : 0;
    for (long i = 0; i < n; ++i) {
        const double p = fabs((double)weights[i]);
        const double here = p > 0 && i != smallest ? pow(p, 1 - beta) * (g[i] - mean) : 0;
        g[i] = (T)(here * scale);
        others += here;
    }
    if (smallest >= 0) g[smallest] = (T)(-others * scale);
    return mean * bends - bent;
}

template <class T>
INLINE double gradient(const T *weights, T *used, T *g, T *s, long n, const Heads &heads,
                       double alpha) {
    const double beta = alpha - 1, part = heads.dropped_part;
    const double enlarged = part < 1 ? 1 / (1 - part) : 0;
    const T b = (T)beta, e = (T)enlarged, scale = (T)heads.scale;
    if (alpha > 2) return gradient_above_two(weights, used, g, n, beta, enlarged, heads.scale);
    if (heads.alpha_gradient)
        return gradient_in<T, POWERS_AND_BEND>(weights, used, g, s, n, b, e, scale);
    if (alpha == 1) return gradient_in<T, PLAIN>(weights, used, g, s, n, b, e, scale);
    if (alpha == 1.5) return gradient_in<T, ROOT>(weights, used, g, s, n, b, e, scale);
    if (alpha == 2) return gradient_in<T, LINEAR>(weights, used, g, s, n, b, e, scale);
    return gradient_in<T, POWERS>(weights, used, g, s, n, b, e, scale);
}

template <class T>
TARGET void backward(const Heads &heads, long first, long last, Memory &memory) {
    T *s = (T *)memory.take((heads.keys + Vector<T>::size) * sizeof(T));
    for (long row = first; row < last; ++row) {
        const long query = row % heads.queries, head = heads.first + row / heads.queries;
        long n = heads.keys, start = row * n;
        T *used = heads.used ? (T *)heads.used + start : nullptr, *g = (T *)heads.gradient + start;
        if (heads.mask_kind == CAUSAL && query + 1 < n) {
            const long rest = n - (query + 1);
            n = query + 1;
            memset(g + n, 0, rest * sizeof(T));
            if (used) memset(used + n, 0, rest * sizeof(T));
        }
        const double of_alpha = gradient((const T *)heads.weights + start, used, g, s, n, heads,
                                         heads.alpha[head % heads.heads]);
        if (heads.alpha_gradient) heads.alpha_gradient[row] = of_alpha;
    }
}

template <class T>
TARGET const Kernels *kernels() {
    static const Kernels all = {forward<T>, backward<T>};
    return &all;
}
