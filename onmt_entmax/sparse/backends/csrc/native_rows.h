// Loops over rows that native.cpp starts, under one instruction set; included once for each.
//
// The mapping, its logarithm and its conjugate: native_threshold.h solves a row in the power form,
// which magnifies rounding as alpha nears 1. Below 1.1, and in rows of attention, which are short,
// Newton's method runs on logarithms instead, in the type of the scores:
//
//     log p = log1p(beta (x - m - s)) / beta,  s = t + 1 / beta.
//
// Above alpha 2, native_anchor.h solves all rows.

#include "sparse/backends/csrc/native_row.h"
#include "sparse/backends/csrc/native_anchor.h"

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

// Softmax of a row, in place.
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

// Sums over a row, of which only a few numbers are added in the type of the scores.
struct Sums {
    double total = 0, slope = 0, energy = 0;
};

// Sums at a shift; with ``out``, write probabilities or their logarithms.
template <class T>
TARGET Sums at_shift(const T *x, long n, T maximum, double shift, const Curve &curve, T *out,
                     bool logs) {
    typedef typename Vector<T>::Of V;
    const T beta = (T)curve.beta, near = (T)shift, rest = (T)(shift - (double)near);
    const long size = Vector<T>::size, flush = 64 * size;
    Sums sums;
    for (long begin = 0; begin < n; begin += flush) {
        V total = {}, slope = {}, energy = {};
        for (long i = begin; i < n && i < begin + flush; i += size) {
            const V from_shift = ((load_some(x, i, n) - maximum) - near) - rest;
            const V u = from_shift * beta, base = 1 + u;
            const V log = beta == 0 ? from_shift : logarithm<T>(base, u) * (T)curve.order;
            const auto inside = beta == 0 ? from_shift > -(T)INFINITY : base > 0;
            const V e = exponential<T>(log), p = inside ? e : V{};
            total += p;
            slope += p > 0 ? p / base : V{};
            energy += p > 0 ? p * base : V{};
            if (!out) continue;
            if (logs)
                store_some(out, i, n, inside ? log : V{} - (T)INFINITY);
            else
                store_some(out, i, n, inside & (p == 0) ? V{} + smallest<T>() : p);
        }
        sums.total += sum_of<T>(total);
        sums.slope += sum_of<T>(slope);
        sums.energy += sum_of<T>(energy);
    }
    return sums;
}

// Solve a row in logarithms and write it, if there is ``out``; the threshold is the shift.
template <class T>
TARGET Solved in_logarithms(const T *x, long n, T maximum, const Curve &curve, T *out, bool logs) {
    if (!(maximum - maximum == 0)) {
        for (long i = 0; out && i < n; ++i) out[i] = (T)NAN;
        return {maximum, (double)NAN, (double)NAN, -1};
    }
    const double enough = short_step<T>(n, curve);
    double shift = 0;
    for (int step = 0; step < 100; ++step) {
        const Sums sums = at_shift<T>(x, n, maximum, shift, curve, nullptr, false);
        const double excess = log(sums.total);
        const double rise = curve.beta == 0 ? excess
                                            : -sums.total * expm1(-curve.beta * excess) /
                                                  (curve.beta * sums.slope);
        shift += rise;
        if (!(rise > enough)) break;
    }
    const Sums last = at_shift(x, n, maximum, shift, curve, out, logs);
    const double shifted = shift + (last.energy - 1) / curve.alpha;
    return {maximum, shift, shifted < 0 ? 0 : shifted, -1};
}

INLINE bool takes_logarithms(const Curve &curve) { return curve.whole < 0 && curve.alpha < 1.1; }

// Write the logarithms of the probabilities of a solved row up to alpha 2.
template <class T>
TARGET void write_logs(const T *x, long n, const Solved &solved, Room<T> room, const Curve &curve,
                       T *out) {
    const T *score = solved.count < 0 ? x : room.score;
    if (solved.count >= 0)
        for (long i = 0; i < n; ++i) out[i] = -(T)INFINITY;
    for (long k = 0; k < (solved.count < 0 ? n : solved.count); ++k) {
        const double u = margins((double)score[k], solved.maximum, solved.threshold, curve);
        out[solved.count < 0 ? k : room.column[k]] =
            u > 0 ? (T)(curve.order * log(u * curve.beta)) : -(T)INFINITY;
    }
}

// Copy the probabilities of a support above 0, if there is room for them; return their number, else
// -1.
template <class T>
TARGET long keep_list(long count, long members, Room<T> room, const Rows &work, long row) {
    if (count < 0 || members > work.room) return -1;
    int32_t *column = work.column + row * work.room;
    T *value = (T *)work.value + row * work.room;
    for (long k = 0; k < count; ++k) {
        if (!(room.score[k] > 0)) continue;
        *column++ = room.column[k];
        *value++ = room.score[k];
    }
    return members;
}

// Keep the support of a solved row, if there is room for it; return its size, else -1.
template <class T>
TARGET long keep_support(const Solved &solved, const Curve &curve, Room<T> room, const Rows &work,
                         long row) {
    long members = 0;
    for (long k = 0; k < solved.count; ++k)
        members += room.score[k] - solved.maximum - solved.threshold > curve.least;
    if (solved.count < 0 || members > work.room) return -1;
    finish(room.score, room.score, solved.count, solved, curve);
    return keep_list(solved.count, members, room, work, row);
}

// Solve rows; write what `Rows` has memory for: probabilities or their logarithms, conjugates, and
// what `scale_rows` needs.
template <class T>
TARGET bool map_rows(const void *packed, long n, long first, long last, Memory &memory) {
    const Rows &work = *(const Rows *)packed;
    const Room<T> room = room_up_to<T>(n, memory);
    Curve curve = Curve::of(work.alpha);
    bool impossible = false;
    for (long row = first; row < last; ++row) {
        if (work.alphas && work.alphas[row] != curve.alpha) curve = Curve::of(work.alphas[row]);
        const T *x = (const T *)work.scores + row * n;
        T *out = work.out ? (T *)work.out + row * n : nullptr;
        Solved solved;
        const bool above_two = curve.alpha > 2;
        if (above_two) {
            solved = solve_above_two(x, n, curve, room);
            finish_support(room, solved, curve, work.logs);
            if (out) spread_support(room, n, solved, work.logs, out);
        } else if (takes_logarithms(curve)) {
            const T maximum = block_maxima(x, n, depth_of<T>(n), room.maxima);
            solved = in_logarithms(x, n, maximum, curve, out, work.logs);
        } else {
            solved = solve(x, n, curve, room);
            if (work.logs && solved.threshold == solved.threshold)
                write_logs(x, n, solved, room, curve, out);
            else if (out)
                write_solved(x, n, solved, room, curve, out);
        }
        impossible |= solved.maximum == -INFINITY;
        if (work.shifted) ((T *)work.shifted)[row] = (T)solved.shifted;
        if (work.maxima) ((T *)work.maxima)[row] = (T)solved.maximum;
        if (work.threshold) {
            work.threshold[2 * row] = solved.threshold;
            work.threshold[2 * row + 1] = solved.least;
        }
        if (work.count)
            work.count[row] = above_two ? keep_list(solved.count, solved.count, room, work, row)
                                        : keep_support(solved, curve, room, work, row);
    }
    return impossible;
}

// Write the probabilities of rows that `map_rows` has solved, times a factor for each row.
template <class T>
TARGET bool scale_rows(const void *packed, long n, long first, long last, Memory &) {
    const Rows &work = *(const Rows *)packed;
    Curve curve = Curve::of(work.alpha);
    for (long row = first; row < last; ++row) {
        if (work.alphas && work.alphas[row] != curve.alpha) curve = Curve::of(work.alphas[row]);
        const T *x = (const T *)work.scores + row * n, factor = ((const T *)work.factor)[row];
        T *out = (T *)work.out + row * n;
        const T maximum = ((const T *)work.maxima)[row];
        const double threshold = work.threshold[2 * row], least = work.threshold[2 * row + 1];
        if (work.count[row] >= 0) {
            memset(out, 0, n * sizeof(T));
            for (long k = row * work.room; k < row * work.room + work.count[row]; ++k)
                out[work.column[k]] = ((const T *)work.value)[k] * factor;
            continue;
        }
        if (takes_logarithms(curve) && threshold == threshold)
            at_shift(x, n, maximum, threshold, curve, out, false);
        else if (curve.alpha > 2 && threshold == threshold)
            write_above_two(x, n, threshold, least, curve, out);
        else
            write_row(x, n, maximum, threshold, curve, out);
        for (long i = 0; i < n; ++i) out[i] *= factor;
    }
    return false;
}

// ---- rows of attention -----------------------------------------------------------------------

// Replace the scores of a query by its weights: zeros if it has no keys, nan if a score is nan or
// +inf.
template <class T>
TARGET void solve_weights(T *x, long n, T maximum, const Curve &curve, Room<T> room) {
    if (maximum == -INFINITY) {
        memset(x, 0, n * sizeof(T));
    } else if (!(maximum < INFINITY)) {
        for (long i = 0; i < n; ++i) x[i] = (T)NAN;
    } else if (curve.beta == 0) {
        softmax(x, n, maximum);
    } else if (curve.alpha > 2) {
        const Solved solved = solve_above_two(x, n, curve, room);
        finish_support(room, solved, curve, false);
        spread_support(room, n, solved, false, x);
    } else if (curve.whole < 0) {
        in_logarithms(x, n, maximum, curve, x, false);
    } else {
        Totals last;
        double before;
        const double threshold = climb<T, T>(x, n, maximum, -curve.order, curve,
                                             short_step<T>(n, curve), 100, last, before);
        write_row(x, n, maximum, threshold, curve, x);
    }
}

// A hash of 64 bits: the finaliser of SplitMix64.
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
        // A hash of 32 bits, of which 24 decide; its shifts and factors are those of lowbias32
        // (C. Wellons 2018, "Prospecting for Hash Functions").
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

// The keys that a query may attend to; the weights of the others become 0.
template <class T>
INLINE long attended(const Heads &heads, long query, long n, T *weights) {
    if (!weights || heads.mask_kind != CAUSAL || query + 1 >= n) return n;
    memset(weights + query + 1, 0, (n - query - 1) * sizeof(T));
    return query + 1;
}

// Turn the scores of attention into weights, a row for each query of each head; see `Heads`.
template <class T>
TARGET bool forward(const void *packed, long keys, long first, long last, Memory &memory) {
    const Heads &heads = *(const Heads *)packed;
    Room<T> room = {};
    for (long row = first; row < last; ++row) {
        const long query = row % heads.queries, head = heads.first + row / heads.queries;
        const long of_alpha = head % heads.heads, outer = head / heads.heads;
        const double alpha = heads.alpha[of_alpha];
        T *x = (T *)heads.weights + row * keys;
        const long offset = outer * heads.mask_outer + of_alpha * heads.mask_head +
                            query * heads.mask_row;
        const char *mask = heads.mask + offset * (heads.mask_kind == NUMBERS ? sizeof(T) : 1);
        const long n = attended(heads, query, keys, x);
        const T maximum = prepare(x, n, (T)heads.scale, heads.mask_kind, mask);
        if (alpha > 2 && !room.score) room = room_up_to<T>(keys, memory);
        // Loops are compiled for these orders.
        solve_weights(x, n, maximum, Curve::of(alpha, alpha == 2 ? 1 : alpha == 1.5 ? 2 : -1),
                      room);
        if (heads.used)
            drop(x, (T *)heads.used + row * keys, keys,
                 mixed(heads.seed + 0x9e3779b97f4a7c15 * (head * heads.queries + query)),
                 heads.dropped_part);
    }
    return false;
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
// derivatives.py for the gradient in alpha.
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

// What the second pass of a gradient needs: vectors with a member of the support.
template <class T>
struct Inside {
    T *slope, *incoming;
    int *place;
};

// The gradient ``g`` of a row in the scores from that in the weights as used, which may lie there;
// returns that in alpha, where ``form`` asks for it (Correia, Niculae and Martins 2019,
// Proposition 1).
template <class T, int form>
TARGET double gradient_in(const T *weights, T *used, const T *incoming, T *g, Inside<T> inside,
                          long n, T beta, T enlarged, T scale) {
    typedef typename Vector<T>::Of V;
    const long size = Vector<T>::size, flush = 64 * size;
    double all = 0, along = 0, bends = 0, bent = 0;
    long count = 0;
    for (long begin = 0; begin < n; begin += flush) {
        V a = {}, b = {}, c = {}, d = {};  // of all, along, bends and bent
        for (long i = begin; i < n && i < begin + flush; i += size) {
            const bool whole = i + size <= n;
            V p = {}, v = {};
            memcpy(&p, weights + i, whole ? sizeof p : (n - i) * sizeof(T));
            if (!bits(p != 0)) {  // as most of a long row
                if (used) store_some(used, i, n, p);
                continue;
            }
            memcpy(&v, incoming + i, whole ? sizeof v : (n - i) * sizeof(T));
            if (used) {
                const auto kept = p > 0;
                v = kept ? v * enlarged : V{};
                store_some(used, i, n, kept ? p * enlarged : V{});
                p = kept ? p : -p;
            }
            const Slopes<T> slopes = slopes_of<T, form>(p, beta);
            store<T>(inside.slope + count * size, slopes.s);
            store<T>(inside.incoming + count * size, p != 0 ? v : V{});
            inside.place[count++] = (int)i;
            a += slopes.s;
            b += p != 0 ? slopes.s * v : V{};
            if (form == POWERS_AND_BEND) c += slopes.bend, d += p != 0 ? slopes.bend * v : V{};
        }
        all += sum_of<T>(a), along += sum_of<T>(b);
        if (form == POWERS_AND_BEND) bends += sum_of<T>(c), bent += sum_of<T>(d);
    }
    const double mean = all > 0 ? along / all : 0;
    if (count * size < n) memset(g, 0, n * sizeof(T));
    for (long k = 0; k < count; ++k) {
        const V s = Load<T, T>::from(inside.slope + k * size);
        const V v = Load<T, T>::from(inside.incoming + k * size);
        store_some(g, inside.place[k], n, s * ((v - (T)mean) * scale));
    }
    return mean * bends - bent;
}

// The support of a row for alpha above 2, in whole vectors.
struct Support {
    double *probability, *incoming, *log_weight;
    int *place;

    static Support up_to(long n, Memory &memory) {
        const long size = (n + 8) * sizeof(double);
        return {(double *)memory.take(size), (double *)memory.take(size),
                (double *)memory.take(size), (int *)memory.take(size)};
    }
};

// As `gradient_in` for alpha above 2, where Jacobian weights s may be huge: in float64, with means
// over s relative to the largest. Gradients add up to 0, and that of the largest s is computed so.
// In the gradient in alpha, multiples of s add nothing, which leaves -p (1 - beta log p) / beta^2 of
// p k. See gradients in derivatives.py.
template <class T>
TARGET double gradient_above_two(const T *weights, T *used, const T *incoming, T *g,
                                 const Support &support, long n, double beta, double enlarged,
                                 double scale) {
    long count = 0;
    bool broken = false;
    for (long i = 0; i < n; ++i) {
        const T p = weights[i];
        const bool kept = !used || p > 0;
        if (used) used[i] = kept ? (T)(p * enlarged) : (T)0;
        if (p == 0) continue;
        const double v = !used ? incoming[i] : kept ? incoming[i] * enlarged : 0;
        broken |= p != p || v != v;
        support.probability[count] = p < 0 ? -p : p;
        support.incoming[count] = v;
        support.place[count++] = (int)i;
    }
    for (long i = 0; i < n; ++i) g[i] = broken ? (T)NAN : (T)0;
    if (broken || !count) return broken ? NAN : 0;
    double largest = -INFINITY;
    long lead = 0;
    for (long k = count; k % 8; ++k) support.probability[k] = 1, support.incoming[k] = 0;
    for (long k = 0; k < count; k += 8) {
        const Doubles p = Load<double, double>::from(support.probability + k);
        store<double>(support.log_weight + k, logarithm<double>(p, p - 1) * (1 - beta));
    }
    for (long k = count; k % 8; ++k) support.log_weight[k] = -INFINITY;
    for (long k = 0; k < count; ++k)
        if (support.log_weight[k] > largest) largest = support.log_weight[lead = k];
    Doubles all = {}, along = {};
    for (long k = 0; k < count; k += 8) {
        const Doubles logs = Load<double, double>::from(support.log_weight + k);
        const Doubles share = exponential<double>(logs - largest);
        all += share;
        along += share * Load<double, double>::from(support.incoming + k);
    }
    const double mean = sum_of<double>(along) / sum_of<double>(all);
    Doubles bent = {}, others = {};
    for (long k = 0; k < count; k += 8) {
        const Doubles p = Load<double, double>::from(support.probability + k);
        const Doubles logs = Load<double, double>::from(support.log_weight + k);
        const Doubles v = Load<double, double>::from(support.incoming + k) - mean;
        const Doubles log_p = logs > -INFINITY ? logs / (1 - beta) : Doubles{};
        bent += (logs > -INFINITY ? p : Doubles{}) * (1 - beta * log_p) * v;
        Doubles s = exponential<double>(logs < 709 ? logs : Doubles{});
        s = (logs < 709 ? s : Doubles{} + INFINITY) * v;
        if (lead - k >= 0 && lead - k < 8) s[lead - k] = 0;
        others += s;
        for (long lane = 0; lane < 8 && k + lane < count; ++lane)
            g[support.place[k + lane]] = (T)(s[lane] * scale);
    }
    g[support.place[lead]] = (T)(-sum_of<double>(others) * scale);
    return sum_of<double>(bent) / (beta * beta);
}

// Turn gradients in weights into those in scores, and in alpha where they are wanted; see `Heads`.
template <class T>
TARGET bool backward(const void *packed, long keys, long first, long last, Memory &memory) {
    const Heads &heads = *(const Heads *)packed;
    const long size = Vector<T>::size, vectors = keys / size + 1;
    const Inside<T> s = {(T *)memory.take(vectors * size * sizeof(T)),
                         (T *)memory.take(vectors * size * sizeof(T)),
                         (int *)memory.take(vectors * sizeof(int))};
    const double part = heads.dropped_part;
    const T enlarged = (T)(part < 1 ? 1 / (1 - part) : 0), scale = (T)heads.scale;
    Support support = {};
    for (long row = first; row < last; ++row) {
        const long query = row % heads.queries, start = row * keys;
        const double alpha = heads.alpha[(heads.first + row / heads.queries) % heads.heads];
        const T beta = (T)(alpha - 1), *weights = (const T *)heads.weights + start;
        T *used = heads.used ? (T *)heads.used + start : nullptr, *g = (T *)heads.gradient + start;
        const T *in = (const T *)heads.incoming + start;
        attended(heads, query, keys, used);
        const long n = attended(heads, query, keys, g);
        if (alpha > 2) {
            if (!support.place) support = Support::up_to(keys, memory);
            const double in_alpha = gradient_above_two(weights, used, in, g, support, n,
                                                       alpha - 1, enlarged, heads.scale);
            if (heads.alpha_gradient) heads.alpha_gradient[row] = in_alpha;
        } else if (heads.alpha_gradient)
            heads.alpha_gradient[row] = gradient_in<T, POWERS_AND_BEND>(
                weights, used, in, g, s, n, beta, enlarged, scale);
        else if (alpha == 1)
            gradient_in<T, PLAIN>(weights, used, in, g, s, n, beta, enlarged, scale);
        else if (alpha == 1.5)
            gradient_in<T, ROOT>(weights, used, in, g, s, n, beta, enlarged, scale);
        else if (alpha == 2)
            gradient_in<T, LINEAR>(weights, used, in, g, s, n, beta, enlarged, scale);
        else
            gradient_in<T, POWERS>(weights, used, in, g, s, n, beta, enlarged, scale);
    }
    return false;
}

template <class T>
TARGET const Kernels *kernels() {
    static const Kernels all = {map_rows<T>, scale_rows<T>, forward<T>, backward<T>};
    return &all;
}
