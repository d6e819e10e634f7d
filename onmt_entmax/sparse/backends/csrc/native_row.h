// Probabilities of one solved row, under one instruction set: see native_common.h.

#include "sparse/backends/csrc/native_threshold.h"

// The margins of scores in float64, 0 outside the support. This alone decides what is in the
// support, for probabilities and for logarithms.
template <class V>
INLINE V margins(V score, double maximum, double threshold, const Curve &curve) {
    const V u = (score - maximum) - threshold;
    return u > curve.least ? u : V{};
}

// The smallest number of a type: a probability of the support that rounds to 0 becomes this.
template <class T>
INLINE T smallest() {
    return sizeof(T) == 4 ? 0x1p-149 : 0x1p-1074;
}

// Probabilities of scores, computed in float64; ``out`` may be the scores.
template <class T, int form>
TARGET void finish_in(const T *x, T *out, long n, const Solved &solved, const Curve &curve) {
    T part[8];
    for (long k = 0; k < n; k += 8) {
        const long left = n - k < 8 ? n - k : 8;
        const Doubles v =
            left == 8 ? Load<double, T>::from(x + k) : load_part<double, T>(x + k, left);
        const Doubles u = margins(v, solved.maximum, solved.threshold, curve);
        const Doubles p = power<T, form>(u * curve.beta, curve, 0);
        for (int lane = 0; lane < 8; ++lane) part[lane] = (T)p[lane];
        // Lower powers than these cannot round to 0.
        if ((form == WHOLE || form == ANY) && bits((u > 0) & (p < smallest<T>())))
            for (int lane = 0; lane < 8; ++lane)
                if (u[lane] > 0 && part[lane] == 0) part[lane] = smallest<T>();
        memcpy(out + k, part, left * sizeof(T));
    }
}

template <class T>
TARGET void finish(const T *x, T *out, long n, const Solved &solved, const Curve &curve) {
    switch (curve.whole) {
        case 1:
            return finish_in<T, ONE>(x, out, n, solved, curve);
        case 2:
            return finish_in<T, TWO>(x, out, n, solved, curve);
        case -1:
            return finish_in<T, ANY>(x, out, n, solved, curve);
        default:
            return finish_in<T, WHOLE>(x, out, n, solved, curve);
    }
}

// Replace the margins in float32 that may be rounding by those in float64.
INLINE Floats exact_near(Floats u, Floats score, double maximum, double threshold, float near,
                         const Curve &curve) {
    if (!bits((u < near) & (u > -near))) return u;
    for (int lane = 0; lane < 16; ++lane)
        if (u[lane] < near && u[lane] > -near)
            u[lane] = (float)margins((double)score[lane], maximum, threshold, curve);
    return u;
}
INLINE Doubles exact_near(Doubles u, Doubles, double, double, double, const Curve &curve) {
    return u > curve.least ? u : Doubles{};
}

// Probabilities of a whole row.
template <class T, int form>
TARGET void write_row_in(const T *x, long n, T maximum, double threshold, const Curve &curve,
                         T *out) {
    typedef typename Vector<T>::Of V;
    const long size = Vector<T>::size;
    typedef typename Vector<T>::Mask M;
    const T close = (T)threshold, rest = (T)(threshold - (double)close), beta = (T)curve.beta;
    const T near = (T)(0x1p-21 * curve.order);
    for (long i = 0; i < n; i += size) {
        const bool whole = i + size <= n;
        const V v = whole ? Load<T, T>::from(x + i) : load_part<T, T>(x + i, n - i);
        V u = ((v - maximum) - close) - rest;
        u = exact_near(u, v, maximum, threshold, near, curve);
        u = u > 0 ? u : V{};
        V p = power<T, form>(u * beta, curve, 0);
        if (form == WHOLE || form == ANY) {
            const M lost = (u > 0) & (p == 0);
            if (bits(lost)) p = lost ? V{} + smallest<T>() : p;
        }
        if (whole)
            store<T>(out + i, p);
        else
            store_part<T>(out + i, p, n - i);
    }
}

template <class T>
TARGET void write_row(const T *x, long n, T maximum, double threshold, const Curve &curve,
                      T *out) {
    if (threshold != threshold) {
        for (long i = 0; i < n; ++i) out[i] = (T)NAN;
        return;
    }
    switch (curve.whole) {
        case 1:
            return write_row_in<T, ONE>(x, n, maximum, threshold, curve, out);
        case 2:
            return write_row_in<T, TWO>(x, n, maximum, threshold, curve, out);
        case -1:
            return write_row_in<T, ANY>(x, n, maximum, threshold, curve, out);
        default:
            return write_row_in<T, WHOLE>(x, n, maximum, threshold, curve, out);
    }
}

// For rows of any length up to n; a shorter row may have more candidates, or smaller blocks.
template <class T>
TARGET Room<T> room_up_to(long n, Memory &memory) {
    const long size = Vector<T>::size, shallow = 4, deep = 16, most = n + (deep + 1) * size;
    Room<T> room;
    room.maxima = (T *)memory.take((n / (shallow * size) + 2) * size * sizeof(T));
    room.score = (T *)memory.take(most * sizeof(T));
    room.column = (int *)memory.take(most * sizeof(int));
    return room;
}

// Probabilities of a solved row.
template <class T>
TARGET void write_solved(const T *x, long n, const Solved &solved, Room<T> room, const Curve &curve,
                         T *out) {
    const bool dense = solved.count < 0 || 4 * solved.count > n;
    if (solved.threshold != solved.threshold || dense) {
        write_row(x, n, (T)solved.maximum, solved.threshold, curve, out);
        return;
    }
    finish(room.score, room.score, solved.count, solved, curve);
    memset(out, 0, n * sizeof(T));
    for (long k = 0; k < solved.count; ++k) out[room.column[k]] = room.score[k];
}
