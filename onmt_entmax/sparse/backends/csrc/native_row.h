// The probabilities of one solved row up to alpha 2, under one instruction set: see
// native_dispatch.h.
//
// `solve` of native_threshold.h has found the threshold of the row. If there are few candidates for
// the support, it has also listed them in `Scratch`: their scores and columns. Such a list has all
// scores above the threshold, so every other probability is 0. Hence there are two ways to write
// probabilities: from a short list (`write_list`), and from the whole row (`write_row`).
// `write_solved` chooses.

#include "sparse/backends/csrc/native_threshold.h"

// If a list has more than a quarter of the row's scores, writing the whole row is faster.
const long LONGEST_LIST_DIVISOR = 4;
// Margins up to the order times this are too small for float32. A score on the threshold is below
// the maximum by at most the order. Float32 rounds such a difference by at most the order times
// 2^-24, and this is eight times as much.
const double MARGIN_ROUNDING = 0x1p-21;

// The margins of scores in float64, 0 outside the support. A score is in the support if and only if
// this is positive, for probabilities and for logarithms.
template <class V>
INLINE V margins(V score, double maximum, double threshold, const Curve &curve) {
    const V u = (score - maximum) - threshold;
    return u > curve.negligible_margin ? u : V{};
}

// The smallest positive number of a type. A probability in the support that rounds to 0 becomes it.
template <class T>
INLINE T smallest() {
    return sizeof(T) == 4 ? 0x1p-149 : 0x1p-1074;
}

// ---- the list of candidates ------------------------------------------------------------------

// Writes the probabilities of the `count` listed scores x, computed in float64; `out` may be x.
template <class T, Form form>
TARGET void write_list_in(const T *x, T *out, long count, const Solved &solved,
                          const Curve &curve) {
    T part[DOUBLE_LANES];
    for (long k = 0; k < count; k += DOUBLE_LANES) {
        const Doubles u =
            margins(load_at<double>(x, k, count), solved.maximum, solved.threshold, curve);
        const Doubles p = power<T, form>(u * curve.beta, curve);
        for (long lane = 0; lane < DOUBLE_LANES; ++lane) part[lane] = (T)p[lane];
        // The powers of ONE and TWO cannot round to 0.
        if ((form == WHOLE || form == ANY) && bits((u > 0) & (p < smallest<T>())))
            for (long lane = 0; lane < DOUBLE_LANES; ++lane)
                if (u[lane] > 0 && part[lane] == 0) part[lane] = smallest<T>();
        memcpy(out + k, part, (count - k < DOUBLE_LANES ? count - k : DOUBLE_LANES) * sizeof(T));
    }
}

// The same for the form of the curve.
template <class T>
TARGET void write_list(const T *x, T *out, long count, const Solved &solved, const Curve &curve) {
    const Form form = curve.form();
    if (form == ONE) return write_list_in<T, ONE>(x, out, count, solved, curve);
    if (form == TWO) return write_list_in<T, TWO>(x, out, count, solved, curve);
    if (form == WHOLE) return write_list_in<T, WHOLE>(x, out, count, solved, curve);
    return write_list_in<T, ANY>(x, out, count, solved, curve);
}

// ---- a whole row -----------------------------------------------------------------------------

// The margins of a row's scores in the type of the scores.
template <class T>
struct RowMargins {
    typedef typename Vector<T>::Type V;
    const T maximum;
    const double threshold;
    const Curve &curve;
    // The threshold in two parts, since T has too few digits for it.
    const T high = (T)threshold, low = (T)(threshold - (double)high);

    INLINE V of(V score) const { return ((score - maximum) - high) - low; }
};

// The margins in type T; they are 0 or negative outside the support.
//
// In float32, margins near 0 are computed again in float64. For example, a score 1e-9 above the
// threshold belongs to the support, but in float32 its margin may round to 0 or below.
INLINE Floats exact_margins(Floats score, const RowMargins<float> &row) {
    Floats u = row.of(score);
    const float near = (float)(MARGIN_ROUNDING * row.curve.order);
    if (!bits((u < near) & (u > -near))) return u;
    for (long lane = 0; lane < FLOAT_LANES; ++lane)
        if (u[lane] < near && u[lane] > -near)
            u[lane] =
                (float)margins((double)score[lane], row.maximum, row.threshold, row.curve);
    return u;
}
INLINE Doubles exact_margins(Doubles score, const RowMargins<double> &row) {
    return margins(score, row.maximum, row.threshold, row.curve);
}

// Writes the probabilities of a row (n,), computed in its type.
template <class T, Form form>
TARGET void write_row_in(const T *x, long n, T maximum, double threshold, const Curve &curve,
                         T *out) {
    typedef typename Vector<T>::Type V;
    const RowMargins<T> row = {maximum, threshold, curve};
    const T beta = (T)curve.beta;
    for (long i = 0; i < n; i += Vector<T>::size) {
        V u = exact_margins(load_at<T>(x, i, n), row);
        u = u > 0 ? u : V{};
        V p = power<T, form>(u * beta, curve);
        if (form == WHOLE || form == ANY) {
            const typename Vector<T>::Mask lost = (u > 0) & (p == 0);
            if (bits(lost)) p = lost ? V{} + smallest<T>() : p;
        }
        store_at(out, i, n, p);
    }
}

// Writes the probabilities of a row (n,), nan if it has no solution.
template <class T>
TARGET void write_row(const T *x, long n, T maximum, double threshold, const Curve &curve, T *out) {
    if (threshold != threshold) {  // nan
        for (long i = 0; i < n; ++i) out[i] = (T)NAN;
        return;
    }
    const Form form = curve.form();
    if (form == ONE) return write_row_in<T, ONE>(x, n, maximum, threshold, curve, out);
    if (form == TWO) return write_row_in<T, TWO>(x, n, maximum, threshold, curve, out);
    if (form == WHOLE) return write_row_in<T, WHOLE>(x, n, maximum, threshold, curve, out);
    return write_row_in<T, ANY>(x, n, maximum, threshold, curve, out);
}

// ---- the faster of the two ways --------------------------------------------------------------

// Writes a row (n,) from the first `count` entries of a list, with `outside` in all other columns.
template <class T>
TARGET void spread_list(Scratch<T> list, long count, long n, T outside, T *out) {
    for (long i = 0; i < n; ++i) out[i] = outside;
    for (long k = 0; k < count; ++k) out[list.column[k]] = list.score[k];
}

// Writes the probabilities of a solved row (n,). If it uses the list, the list's scores become
// probabilities.
template <class T>
TARGET void write_solved(const T *x, long n, const Solved &solved, Scratch<T> scratch,
                         const Curve &curve, T *out) {
    if (!solved.has_list() || LONGEST_LIST_DIVISOR * solved.count > n) {
        write_row(x, n, (T)solved.maximum, solved.threshold, curve, out);
        return;
    }
    write_list(scratch.score, scratch.score, solved.count, solved, curve);
    spread_list(scratch, solved.count, n, (T)0, out);
}
