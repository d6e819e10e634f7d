// The loops over rows that native.cpp starts, under one instruction set; included once for each.
//
// native_threshold.h solves a row; here are probabilities, logarithms, supports and gradients.

#include "sparse/backends/csrc/native_row.h"

// ---- ranges of rows --------------------------------------------------------------------------

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
            logarithm<T>(margins((double)room.score[k], solved.maximum, solved.threshold, curve),
                         curve);
    if (solved.count >= 0) return;
    for (long i = 0; i < n; ++i)
        out[i] = logarithm<T>(margins((double)x[i], solved.maximum, solved.threshold, curve), curve);
}

template <class T>
TARGET Room<T> room_of_work(const Work &work, Memory &memory) {
    if (work.alphas) return room_up_to<T>(work.n, memory);
    return room_for<T>(work.n, work.curve, memory);
}

template <class T>
TARGET void probabilities(const Work &work, long first, long last, Piece &piece) {
    const Room<T> room = room_of_work<T>(work, piece.memory);
    Curves curves(work);
    for (long row = first; row < last; ++row) {
        const Curve &curve = curves.of(row);
        const T *x = (const T *)work.scores + row * work.n;
        T *out = (T *)work.out + row * work.n;
        const Solved solved = solve(x, work.n, curve, room);
        if (solved.maximum == -INFINITY) piece.impossible = true;
        if (work.logs && solved.threshold == solved.threshold)
            write_logs(x, work.n, solved, room, curve, out);
        else
            write_solved(x, work.n, solved, room, curve, out);
    }
}

// Append the support of a row to the entries; false if it is too large.
template <class T>
TARGET bool collect(const Solved &solved, long row, const Work &work, const Curve &curve,
                    Room<T> room, Piece &piece) {
    long members = 0;
    for (long k = 0; k < solved.count; ++k)
        members += room.score[k] - solved.maximum - solved.threshold > curve.least;
    if (members > work.most) return false;
    finish(room.score, room.score, solved.count, solved, curve);
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
    const Room<T> room = room_of_work<T>(work, piece.memory);
    Curves curves(work);
    for (long row = first; row < last; ++row) {
        const T *x = (const T *)work.scores + row * work.n;
        const Curve &curve = curves.of(row);
        const Solved solved = solve(x, work.n, curve, room);
        if (solved.maximum == -INFINITY) piece.impossible = true;
        ((T *)work.shifted)[row] = (T)solved.shifted;
        ((T *)work.maxima)[row] = (T)solved.maximum;
        work.threshold[row] = solved.threshold;
        work.dense[row] = solved.count < 0 || !collect(solved, row, work, curve, room, piece);
    }
}

template <class T>
TARGET void written(const Work &work, long first, long last, Piece &) {
    Curves curves(work);
    for (long row = first; row < last; ++row) {
        const T factor = work.factor ? ((const T *)work.factor)[row] : (T)1;
        write_row((const T *)work.scores + row * work.n, work.n, ((const T *)work.maxima)[row],
                  work.threshold[row], factor, curves.of(row), (T *)work.out + row * work.n);
    }
}

INLINE float root(float x) { return sqrtf(x); }
INLINE double root(double x) { return sqrt(x); }

// Jacobian weights p ** (2 - alpha) on the support.
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

// Gradients of a row for alpha above 2, where the smallest probability has the largest weight,
// possibly infinite: see _gradient_above_two in jacobian.py.
template <class T>
TARGET void gradient_above_two(const T *p, const T *g, T *out, long n, double alpha) {
    long least = -1;
    for (long i = 0; i < n; ++i)
        if (p[i] != 0 && (least < 0 || !(p[i] >= p[least]))) least = i;
    double along = 0, all = 0, others = 0;
    for (long i = 0; i < n; ++i) {
        if (p[i] == 0) continue;
        const double share = pow((double)p[i] / p[least], 2 - alpha);
        along += share * g[i];
        all += share;
    }
    for (long i = 0; i < n; ++i) {
        const bool counts = p[i] != 0 && i != least;
        const double here = counts ? pow((double)p[i], 2 - alpha) * (g[i] - along / all) : 0;
        out[i] = (T)here;
        others += here;
    }
    if (least >= 0) out[least] = (T)-others;
}

// Gradients s * g - s * sum(s * g) / sum(s) with Jacobian weights s (Peters, Niculae and Martins
// 2019, Proposition 1).
template <class T>
TARGET void gradients(const Work &work, long first, long last, Piece &) {
    typedef typename Vector<T>::Of V;
    const long size = Vector<T>::size, n = work.n, flush = 64 * size;
    Curves curves(work);
    for (long row = first; row < last; ++row) {
        const Curve &curve = curves.of(row);
        const T *p = (const T *)work.scores + row * n, *g = (const T *)work.incoming + row * n;
        T *out = (T *)work.out + row * n;
        if (curve.alpha > 2) {
            gradient_above_two(p, g, out, n, curve.alpha);
            continue;
        }
        double along = 0, all = 0;
        for (long begin = 0; begin < n; begin += flush) {
            V part = {}, whole = {};
            for (long i = begin; i < n && i < begin + flush; i += size) {
                const bool full = i + size <= n;
                V v = {}, w = {};
                memcpy(&v, p + i, full ? sizeof v : (n - i) * sizeof(T));
                memcpy(&w, g + i, full ? sizeof w : (n - i) * sizeof(T));
                v = slope<T>(v, curve);
                whole += v;
                w = v * w;
                part += w;
                // The weights are costly: keep them in the result for the second pass.
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

const double LOG2_E = 1.4426950408889634;

// Vector i of logarithms, padded with -inf, and their Jacobian weights.
template <class T>
INLINE typename Vector<T>::Of logs_at(long i, const T *logs, long n) {
    const bool full = i + Vector<T>::size <= n;
    return full ? Load<T, T>::from(logs + i) : load_part<T>(logs + i, n - i);
}

template <class T>
INLINE typename Vector<T>::Of slope_of_logs(typename Vector<T>::Of log, double alpha) {
    typedef typename Vector<T>::Of V;
    const V s = power_of_two<T>(log * (T)((2 - alpha) * LOG2_E));
    return log > -(T)INFINITY ? s : V{};
}

// Gradients r - s * sum(r) / sum(s) with r = g p ** (1 - alpha) from those in logarithms, for alpha
// up to 2; p itself may be too small for its type.
template <class T>
TARGET void log_gradients(const Work &work, long first, long last, Piece &) {
    typedef typename Vector<T>::Of V;
    const long size = Vector<T>::size, n = work.n, flush = 64 * size;
    Curves curves(work);
    for (long row = first; row < last; ++row) {
        const double alpha = curves.of(row).alpha;
        const T of_g = (T)((1 - alpha) * LOG2_E);
        const T *x = (const T *)work.scores + row * n, *g = (const T *)work.incoming + row * n;
        T *out = (T *)work.out + row * n;
        double along = 0, all = 0;
        for (long begin = 0; begin < n; begin += flush) {
            V part = {}, whole = {};
            for (long i = begin; i < n && i < begin + flush; i += size) {
                const long count = i + size <= n ? size : n - i;
                const V log = logs_at(i, x, n);
                V r = {};
                if (bits(log > -(T)INFINITY)) {
                    const V s = slope_of_logs<T>(log, alpha);
                    memcpy(&r, g + i, count * sizeof(T));
                    r = alpha == 1.5 ? r / s : r * power_of_two<T>(log * of_g);
                    r = log > -(T)INFINITY ? r : V{};
                    part += r;
                    whole += s;
                }
                store_part<T>(out + i, r, count);
            }
            along += sum_of<T>(part);
            all += sum_of<T>(whole);
        }
        const T mean = (T)(along / all);
        for (long i = 0; i < n; i += size) {
            const long count = i + size <= n ? size : n - i;
            const V log = logs_at(i, x, n);
            if (!bits(log > -(T)INFINITY) && mean - mean == 0) continue;
            V r = {};
            memcpy(&r, out + i, count * sizeof(T));
            r -= slope_of_logs<T>(log, alpha) * mean;
            store_part<T>(out + i, r, count);
        }
    }
}

template <class T>
TARGET const Kernels *kernels() {
    static const Kernels all = {probabilities<T>, conjugates<T>, written<T>, gradients<T>,
                                log_gradients<T>};
    return &all;
}
