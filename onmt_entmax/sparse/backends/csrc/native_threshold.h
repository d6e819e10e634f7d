// The threshold of one row, under one instruction set: see native_common.h.
//
// Up to alpha 2, entmax of a row x is p = (beta [x - max x - t]_+)^(1/beta) with the threshold t
// (docs/mappings.md has the derivation). The margins are [x - max x - t]_+, and their norm of order
// q = 1/beta must be q. It is convex and falls with t, so Newton's method climbs to t from any
// lower bound:
//
//   1. one pass for the maxima of blocks of a long row, which the caches hold from then on;
//   2. a few steps on these maxima: the threshold of a part of a row is a lower bound of the row's;
//   3. a search for the scores above the bound, in the blocks whose maximum is above it;
//   4. Newton's method in float64 on these candidates if they are few; otherwise on the whole row,
//      in its own type up to that type's precision, and then in float64.

#include "sparse/backends/csrc/native_vectors.h"

// The next smaller number, so that rounding excludes nothing.
INLINE float below_of(float x) { return nextafterf(x, -INFINITY); }
INLINE double below_of(double x) { return nextafter(x, -INFINITY); }

// ---- Newton's method -------------------------------------------------------------------------

// Sums of the margins u to the powers q - 1, q and q + 1.
struct Totals {
    double slope, total, energy;
};

template <class C>
struct Lanes {
    typename Vector<C>::Of slope, total, energy;
};

template <class S, class C, int form>
INLINE void add(typename Vector<C>::Of u, const Curve &curve, Lanes<C> &lanes) {
    u = u > 0 ? u : typename Vector<C>::Of{};
    const typename Vector<C>::Of below = power<S, form>(u, curve, 1), whole = below * u;
    lanes.slope += below;
    lanes.total += whole;
    if (sizeof(C) == 8) lanes.energy += whole * u;
}

// Sums over scores of type T, computed in C.
template <class C, class T, int form>
TARGET Totals totals_in(const T *x, long n, double maximum, double threshold, const Curve &curve) {
    const long size = Vector<C>::size, flush = 64 * size;
    const C top = (C)maximum, cut = (C)threshold;
    Totals sums = {0, 0, 0};
    for (long i = 0; i < n;) {
        Lanes<C> lanes = {};
        const long end = i + flush < n ? i + flush : n;
        for (; i + size <= end; i += size)
            add<T, C, form>((Load<C, T>::from(x + i) - top) - cut, curve, lanes);
        if (i < end) {
            add<T, C, form>((load_part<C, T>(x + i, end - i) - top) - cut, curve, lanes);
            i = end;
        }
        // Only a few numbers are added in float32, and their sums in float64.
        sums.slope += sum_of<C>(lanes.slope);
        sums.total += sum_of<C>(lanes.total);
        if (sizeof(C) == 8) sums.energy += sum_of<C>(lanes.energy);
    }
    return sums;
}

template <class C, class T>
INLINE Totals totals(const T *x, long n, double maximum, double threshold, const Curve &curve) {
    switch (curve.whole) {
        case 1:
            return totals_in<C, T, ONE>(x, n, maximum, threshold, curve);
        case 2:
            return totals_in<C, T, TWO>(x, n, maximum, threshold, curve);
        case -1:
            return totals_in<C, T, ANY>(x, n, maximum, threshold, curve);
        default:
            return totals_in<C, T, WHOLE>(x, n, maximum, threshold, curve);
    }
}

// The threshold by Newton's method from a lower bound, in at most ``most`` steps; a step of at most
// ``enough`` is the last. ``last`` and ``before``: the sums before that step and their threshold.
template <class C, class T>
TARGET double climb(const T *x, long n, double maximum, double threshold, const Curve &curve,
                    double enough, int most, Totals &last, double &before) {
    for (int step = 0; step < most; ++step) {
        last = totals<C, T>(x, n, maximum, threshold, curve);
        before = threshold;
        const double norm = curve.norm(last.total);
        const double rise = (norm - curve.wanted) * (last.total / norm) / last.slope;
        threshold += rise;
        if (!(rise > enough)) break;
    }
    return threshold;
}

// ---- one row ---------------------------------------------------------------------------------

template <class T>
struct Room {
    T *maxima;    // of blocks, one vector each
    T *score;     // of candidates; later their probabilities
    int *column;  // of candidates
};

struct Solved {
    double maximum, threshold, shifted;  // shifted conjugate
    long count;                          // of candidates; -1 if they are too many
    double least = 0;                    // above alpha 2, the smallest probability
};

// The vectors of a block: a row below 512 scores is a single block.
template <class T>
INLINE long depth_of(long n) {
    return n < 512 ? n / Vector<T>::size + 1 : n < 4096 ? 4 : 16;
}

// Maxima of blocks of ``depth`` vectors, and of the row; nan if a score is nan.
template <class T>
TARGET T block_maxima(const T *x, long n, long depth, T *maxima) {
    typedef typename Vector<T>::Of V;
    const long size = Vector<T>::size;
    const V least = V{} - (T)INFINITY;
    V row = least;
    typename Vector<T>::Mask broken = {};
    for (long begin = 0; begin < n; begin += depth * size, maxima += size) {
        V block = least;
        const long end = begin + depth * size;
        if (end <= n) {
            for (long i = begin; i < end; i += size) {
                const V v = Load<T, T>::from(x + i);
                block = v > block ? v : block;
                broken |= v != v;
            }
        } else {
            for (long i = begin; i < n; i += size) {
                const V v = i + size <= n ? Load<T, T>::from(x + i) : load_part<T, T>(x + i, n - i);
                block = v > block ? v : block;
                broken |= v != v;
            }
        }
        store<T>(maxima, block);
        row = block > row ? block : row;
    }
    return bits(broken) ? (T)NAN : largest_of<T>(row);
}

// Append the lanes of a vector, at place i of its row, that are above a cut; without branches,
// which no processor would predict.
#if ENTMAX_SET == 3
INLINE long append(Floats v, long i, float cut, long count, Room<float> room) {
    const __mmask16 found = (__mmask16)bits(v > cut);
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i places = _mm512_add_epi32(lanes, _mm512_set1_epi32((int)i));
    _mm512_storeu_ps(room.score + count, _mm512_maskz_compress_ps(found, (__m512)v));
    _mm512_storeu_si512(room.column + count, _mm512_maskz_compress_epi32(found, places));
    return count + __builtin_popcount(found);
}
INLINE long append(Doubles v, long i, double cut, long count, Room<double> room) {
    const __mmask8 found = (__mmask8)bits(v > cut);
    const __m256i places =
        _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32((int)i));
    _mm512_storeu_pd(room.score + count, _mm512_maskz_compress_pd(found, (__m512d)v));
    _mm256_storeu_si256((__m256i *)(room.column + count),
                        _mm256_maskz_compress_epi32(found, places));
    return count + __builtin_popcount(found);
}
#else
template <class T, class V>
INLINE long append(V v, long i, T cut, long count, Room<T> room) {
    if (!bits(v > cut)) return count;
    for (long lane = 0; lane < Vector<T>::size; ++lane) {
        room.score[count] = v[lane];
        room.column[count] = (int)(i + lane);
        count += v[lane] > cut;
    }
    return count;
}
#endif

// List the candidates above a cut in the order of the row; -1 if they are more than ``most``.
template <class T>
TARGET long candidates(const T *x, long n, long depth, T cut, long most, Room<T> room) {
    const long size = Vector<T>::size;
    long count = 0;
    for (long i = 0, block = 0; i < n; ++block) {
        const long end = i + depth * size;
        if (!bits(Load<T, T>::from(room.maxima + block * size) > cut)) {
            i = end;
            continue;
        }
        for (; i < end && i + size <= n; i += size)
            count = append(Load<T, T>::from(x + i), i, cut, count, room);
        if (i < end) {
            if (i < n) count = append(load_part<T, T>(x + i, n - i), i, cut, count, room);
            i = end;
        }
        if (count > most) return -1;
    }
    return count;
}

// Scores from which on starting in float32 pays.
enum { MANY = 48 };

// The type's machine epsilon, and the step from a lower bound after which the error is below it:
// the second derivative of the norm is at most n / 2 (not below order 2, where scores leave the
// support one by one).
template <class T>
INLINE double epsilon() {
    return sizeof(T) == 4 ? 0x1p-23 : 0x1p-52;
}
template <class T>
INLINE double short_step(long n, const Curve &curve) {
    return curve.order >= 2 ? sqrt(epsilon<T>() / n) : epsilon<T>() / n;
}

INLINE long most_candidates(long n) { return n < 512 ? n : n / 2; }

// A lower bound of the threshold of a row from the maxima of its blocks, if there are several; else
// the least threshold there is, that of one-hot probabilities. The last summand lowers the bound by
// more than its rounding.
template <class T>
TARGET double bound_by_blocks(long n, long depth, T maximum, const Curve &curve, Room<T> room) {
    const long blocks = (n + depth * Vector<T>::size - 1) / (depth * Vector<T>::size);
    const double bound = -curve.order;
    if (blocks <= 1) return bound;
    Totals last;
    double before;
    return climb<T, T>(room.maxima, blocks * Vector<T>::size, maximum, bound, curve.bounding(), 0.0,
                       3, last, before) -
           32 * epsilon<T>() * curve.order;
}

// Solve a row up to alpha 2. If the candidates are few, `room` then has them.
template <class T>
TARGET Solved solve(const T *x, long n, const Curve &curve, Room<T> room) {
    const long depth = depth_of<T>(n);
    const T maximum = block_maxima(x, n, depth, room.maxima);
    if (!(maximum < INFINITY && maximum > -INFINITY))
        return {maximum, (double)NAN, (double)NAN, -1};
    Totals last = {0, 0, 0};
    double bound = bound_by_blocks(n, depth, maximum, curve, room), before = bound;
    const T cut = below_of((T)(maximum + bound));
    const long count = candidates(x, n, depth, cut, most_candidates(n), room);
    // The candidates, or the whole row.
    const T *left = count < 0 ? x : room.score;
    const long size = count < 0 ? n : count;
    if (sizeof(T) == 4 && size > MANY)
        bound = climb<T, T>(left, size, maximum, bound, curve, 4e-6, 100, last, before);
    const double threshold = climb<double, T>(left, size, maximum, bound, curve,
                                              short_step<T>(n, curve), 100, last, before);
    // The dual objective, flat at the threshold, at the threshold of the last sums.
    const double energy = last.energy * curve.level;
    const double shifted = before + (energy + curve.order) / curve.alpha;
    // Where the maximum alone is in the support the conjugate is 0; nor is it ever negative.
    const bool alone = threshold <= curve.order * (0x1p-51 - 1);
    return {maximum, threshold, alone || shifted < 0 ? 0 : shifted, count};
}
