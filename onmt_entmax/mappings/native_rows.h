// Rows of scores under one instruction set: included once for each, in a namespace of its own.
//
// native_threshold.h solves a row; here are probabilities, logarithms, supports and gradients of
// solved rows, and the loops over rows that native.cpp starts.

#include "native_threshold.h"

// ---- one row ---------------------------------------------------------------------------------

// Where the curve is steep at the threshold: share out what its rounding left over.
template <class T>
TARGET void share_out(T *probability, long n, T whole) {
    double sum = 0;
    for (long i = 0; i < n; ++i) sum += probability[i];
    for (long i = 0; i < n; ++i) probability[i] = (T)(probability[i] * (whole / sum));
}

// Probabilities of scores, computed in float64, into ``out``, which may be the scores.
template <class T, int form>
TARGET void finish_in(const T *x, T *out, long n, const Solved &solved, const Curve &curve) {
    T part[8];
    for (long k = 0; k < n; k += 8) {
        const long left = n - k < 8 ? n - k : 8;
        const Doubles v =
            left == 8 ? Load<double, T>::from(x + k) : load_part<double, T>(x + k, left);
        Doubles u = ((v - solved.maximum) - solved.threshold) * curve.beta;
        u = power<T, form>(u > 0 ? u : Doubles{}, curve, 0);
        for (int lane = 0; lane < 8; ++lane) part[lane] = (T)u[lane];
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
            finish_in<T, ANY>(x, out, n, solved, curve);
            if (curve.order < 1) share_out(out, n, (T)1);
            return;
        default:
            return finish_in<T, WHOLE>(x, out, n, solved, curve);
    }
}

// Probabilities of a whole row, times a factor.
template <class T, int form>
TARGET void write_row_in(const T *x, long n, T maximum, double threshold, T factor,
                         const Curve &curve, T *out) {
    typedef typename Vector<T>::Of V;
    const long size = Vector<T>::size;
    const T near = (T)threshold, rest = (T)(threshold - (double)near), beta = (T)curve.beta;
    for (long i = 0; i < n; i += size) {
        const bool whole = i + size <= n;
        V u = whole ? Load<T, T>::from(x + i) : load_part<T, T>(x + i, n - i);
        u = ((u - maximum) - near) - rest;
        u = u > 0 ? u : V{};
        u = power<T, form>(u * beta, curve, 0) * factor;
        if (whole)
            store<T>(out + i, u);
        else
            store_part<T>(out + i, u, n - i);
    }
}

template <class T>
TARGET void write_row(const T *x, long n, T maximum, double threshold, T factor, const Curve &curve,
                      T *out) {
    if (threshold != threshold) {
        for (long i = 0; i < n; ++i) out[i] = (T)NAN;
        return;
    }
    switch (curve.whole) {
        case 1:
            return write_row_in<T, ONE>(x, n, maximum, threshold, factor, curve, out);
        case 2:
            return write_row_in<T, TWO>(x, n, maximum, threshold, factor, curve, out);
        case -1:
            if (curve.order >= 1)
                return write_row_in<T, ANY>(x, n, maximum, threshold, factor, curve, out);
            finish(x, out, n, Solved{maximum, threshold, 0, n}, curve);
            for (long i = 0; i < n; ++i) out[i] *= factor;
            return;
        default:
            return write_row_in<T, WHOLE>(x, n, maximum, threshold, factor, curve, out);
    }
}

// ---- ranges of rows --------------------------------------------------------------------------

template <class T>
TARGET Room<T> room_for(long n, const Curve &curve, Memory &memory) {
    const long size = Vector<T>::size, depth = depth_of<T>(n);
    const long most = most_candidates(n, curve) + (depth + 1) * size;
    Room<T> room;
    room.maxima = (T *)memory.take(((n / (depth * size)) + 2) * size * sizeof(T));
    room.score = (T *)memory.take(most * sizeof(T));
    room.column = (int *)memory.take(most * sizeof(int));
    return room;
}

template <class T>
INLINE T logarithm(double margin, const Curve &curve) {
    return margin > 0 ? (T)(curve.order * log(margin * curve.beta)) : -(T)INFINITY;
}

template <class T>
TARGET void write_logs(const T *x, long n, const Solved &solved, Room<T> room, const Curve &curve,
                       T *out) {
    for (long i = 0; i < n; ++i) out[i] = -(T)INFINITY;
    if (curve.order < 1) {
        finish(room.score, room.score, solved.count, solved, curve);
        for (long k = 0; k < solved.count; ++k) out[room.column[k]] = (T)log(room.score[k]);
        return;
    }
    for (long k = 0; k < solved.count; ++k)
        out[room.column[k]] =
            logarithm<T>(room.score[k] - solved.maximum - solved.threshold, curve);
    if (solved.count >= 0) return;
    for (long i = 0; i < n; ++i)
        out[i] = logarithm<T>(x[i] - solved.maximum - solved.threshold, curve);
}

template <class T>
TARGET void probabilities(const Work &work, long first, long last, Piece &piece) {
    const Room<T> room = room_for<T>(work.n, work.curve, piece.memory);
    const Curve &curve = work.curve;
    for (long row = first; row < last; ++row) {
        const T *x = (const T *)work.scores + row * work.n;
        T *out = (T *)work.out + row * work.n;
        const Solved solved = solve(x, work.n, curve, room);
        if (solved.maximum == -INFINITY) piece.impossible = true;
        const bool dense = solved.count < 0 || 4 * solved.count > work.n;
        if (solved.threshold != solved.threshold || (dense && !work.logs)) {
            write_row(x, work.n, (T)solved.maximum, solved.threshold, (T)1, curve, out);
        } else if (work.logs) {
            write_logs(x, work.n, solved, room, curve, out);
        } else {
            finish(room.score, room.score, solved.count, solved, curve);
            memset(out, 0, work.n * sizeof(T));
            for (long k = 0; k < solved.count; ++k) out[room.column[k]] = room.score[k];
        }
    }
}

// Take in the support of a row; false if it is larger than wanted.
template <class T>
TARGET bool collect(const Solved &solved, long row, const Work &work, Room<T> room, Piece &piece) {
    long members = 0;
    for (long k = 0; k < solved.count; ++k)
        members += room.score[k] - solved.maximum > solved.threshold;
    if (members > work.most) return false;
    finish(room.score, room.score, solved.count, solved, work.curve);
    piece.reserve(solved.count, sizeof(T));
    T *probability = (T *)piece.probability;
    long end = piece.count;
    for (long k = 0; k < solved.count; ++k) {
        piece.position[end] = row * work.n + room.column[k];
        piece.row[end] = row;
        probability[end] = room.score[k];
        end += room.score[k] > 0;
    }
    piece.count = end;
    return true;
}

template <class T>
TARGET void conjugates(const Work &work, long first, long last, Piece &piece) {
    const Room<T> room = room_for<T>(work.n, work.curve, piece.memory);
    for (long row = first; row < last; ++row) {
        const T *x = (const T *)work.scores + row * work.n;
        const Solved solved = solve(x, work.n, work.curve, room);
        if (solved.maximum == -INFINITY) piece.impossible = true;
        ((T *)work.excess)[row] = (T)solved.excess;
        ((T *)work.maxima)[row] = (T)solved.maximum;
        work.threshold[row] = solved.threshold;
        work.dense[row] = solved.count < 0 || !collect(solved, row, work, room, piece);
    }
}

template <class T>
TARGET void written(const Work &work, long first, long last, Piece &) {
    for (long row = first; row < last; ++row) {
        const T factor = work.factor ? ((const T *)work.factor)[row] : (T)1;
        write_row((const T *)work.scores + row * work.n, work.n, ((const T *)work.maxima)[row],
                  work.threshold[row], factor, work.curve, (T *)work.out + row * work.n);
    }
}

INLINE float root(float x) { return sqrtf(x); }
INLINE double root(double x) { return sqrt(x); }

// s = p ** (2 - alpha) on the support.
template <class T>
INLINE typename Vector<T>::Of slope(typename Vector<T>::Of p, const Curve &curve) {
    typedef typename Vector<T>::Of V;
    if (curve.alpha == 1.5) {
        T lane[Vector<T>::size];
        memcpy(lane, &p, sizeof p);
        for (long at = 0; at < Vector<T>::size; ++at) lane[at] = root(lane[at]);
        return Load<T, T>::from(lane);
    }
    if (curve.alpha == 2) return p > 0 ? V{} + 1 : V{};
    const V result = power_any<T>(p, 2 - curve.alpha);
    return p > 0 ? result : V{};
}

// s * g - s * sum(s * g) / sum(s), the Jacobian of Proposition 1 in Peters, Niculae and Martins
// (2019).
template <class T>
TARGET void gradients(const Work &work, long first, long last, Piece &) {
    typedef typename Vector<T>::Of V;
    const long size = Vector<T>::size, n = work.n, flush = 64 * size;
    for (long row = first; row < last; ++row) {
        const T *p = (const T *)work.scores + row * n, *g = (const T *)work.incoming + row * n;
        T *out = (T *)work.out + row * n;
        double along = 0, all = 0;
        for (long begin = 0; begin < n; begin += flush) {
            V part = {}, whole = {};
            for (long i = begin; i < n && i < begin + flush; i += size) {
                const bool full = i + size <= n;
                V v = {}, w = {};
                memcpy(&v, p + i, full ? sizeof v : (n - i) * sizeof(T));
                memcpy(&w, g + i, full ? sizeof w : (n - i) * sizeof(T));
                v = slope<T>(v, work.curve);
                whole += v;
                w = v * w;
                part += w;
                // Kept, so that what is costly is not made again.
                if (full)
                    store<T>(out + i, v);
                else
                    store_part<T>(out + i, v, n - i);
            }
            along += sum_of<T>(part);
            all += sum_of<T>(whole);
        }
        const T mean = (T)(along / all);
        for (long i = 0; i < n; i += size) {
            const bool full = i + size <= n;
            V v = {}, w = {};
            memcpy(&v, out + i, full ? sizeof v : (n - i) * sizeof(T));
            memcpy(&w, g + i, full ? sizeof w : (n - i) * sizeof(T));
            v *= w - mean;
            if (full)
                store<T>(out + i, v);
            else
                store_part<T>(out + i, v, n - i);
        }
    }
}

template <class T>
TARGET const Kernels *kernels() {
    static const Kernels all = {probabilities<T>, conjugates<T>, written<T>, gradients<T>};
    return &all;
}
