// A row solved in logarithms, under one instruction set: see native_dispatch.h.
//
// native_threshold.h solves a row in the power form, with the threshold t and beta = alpha - 1. As
// alpha nears 1, this form magnifies rounding. So below alpha 1.1, and in rows of attention, which
// are short, Newton's method runs on logarithms instead, in the type of the scores. Its unknown is
// the shift s of log-probabilities:
//
//     log p = log1p(beta (x - max x - s)) / beta,  s = t + 1 / beta.
//
// At alpha 1 this is softmax, log p = x - max x - s. The solution is the shift at which the sum of
// p is 1. Three sums over the support are needed. With the base b = p^beta, which is the argument
// of the logarithm, they are
//
//     total    sum(p)
//     slope    sum(p / b), minus the derivative of the total with respect to the shift
//     energy   sum(p b) = sum(p^alpha), for the conjugate.
//
// At shift 0 the largest score has p = 1, so the total is at least 1, and 0 is a lower bound of the
// solution. From there Newton's method climbs.
//
// native_kernels.h includes native_row.h before, whose headers have what is used here: `smallest`
// (native_row.h), `Solved` (native_threshold.h), sums and steps (native_newton.h), `logarithm` and
// `exponential` (native_elementary.h).

// Below this alpha, rows are solved in logarithms, since the power form loses digits. Exception:
// whole orders are solved by products, which lose none. The order of alpha 1.1 is 10, even if alpha
// was rounded to a number just below 1.1.
const double LOWEST_ALPHA_OF_POWERS = 1.1;
INLINE bool takes_logarithms(const Curve &curve) {
    return curve.whole == NOT_WHOLE && curve.alpha < LOWEST_ALPHA_OF_POWERS;
}

// ---- a vector of scores ----------------------------------------------------------------------

// A vector of scores at a shift. Outside the support, where `inside` is false, p is 0, and log p
// has no meaning. Inside, p is 0 if it is too small for T.
template <class T>
struct LogTerms {
    typename Vector<T>::Type log_p, p, base;  // log p, p and b
    typename Vector<T>::Mask inside;
};

// A row at a shift, in the type of its scores.
template <class T>
struct ShiftedRow {
    typedef typename Vector<T>::Type V;
    const T maximum, beta, order;
    const T high, low;  // the shift in two parts, since T has too few digits for it

    static INLINE ShiftedRow of(T maximum, double shift, const Curve &curve) {
        const T high = (T)shift, low = (T)(shift - (double)high);
        return {maximum, (T)curve.beta, (T)curve.order, high, low};
    }

    INLINE LogTerms<T> terms(V score) const {
        const V from_shift = ((score - maximum) - high) - low;
        const V u = from_shift * beta, base = 1 + u;
        const V log_p = beta == 0 ? from_shift : logarithm<T>(base, u) * order;
        const auto inside = beta == 0 ? from_shift > -(T)INFINITY : base > 0;
        const V e = exponential<T>(log_p);
        return {log_p, inside ? e : V{}, base, inside};
    }
};

// ---- the shift -------------------------------------------------------------------------------

// The total and the slope of a row (n,); the energy is left 0.
template <class T>
TARGET Sums sums_at_shift(const T *x, long n, const ShiftedRow<T> &row) {
    typedef typename Vector<T>::Type V;
    Sums sums;
    for (long begin = 0; begin < n; begin += CHUNK<T>) {
        V total = {}, slope = {};
        for (long i = begin; i < n && i < begin + CHUNK<T>; i += Vector<T>::size) {
            const LogTerms<T> at = row.terms(load_at<T>(x, i, n));
            total += at.p;
            slope += at.p > 0 ? at.p / at.base : V{};
        }
        sums.total += sum_of<T>(total);
        sums.slope += sum_of<T>(slope);
    }
    return sums;
}

// Newton's step towards a total of 1. As in native_threshold.h, it is the step for the norm, here
// total^beta / beta, whose value at the solution is 1 / beta. It is written so that no digits
// cancel near beta 0:
//
//     (norm - 1 / beta) / -norm' = total (1 - total^-beta) / (beta slope).
INLINE double rise_of(const Sums &sums, double beta) {
    const double excess = log(sums.total);
    if (beta == 0) return excess;
    return -sums.total * expm1(-beta * excess) / (beta * sums.slope);
}

// Finds the shift at which the probabilities of a row (n,) sum to 1.
template <class T>
TARGET double find_shift(const T *x, long n, T maximum, const Curve &curve) {
    const double tolerance = short_step<T>(n, curve);
    double shift = 0;
    for (int step = 0; step < MOST_STEPS; ++step) {
        const Sums sums = sums_at_shift(x, n, ShiftedRow<T>::of(maximum, shift, curve));
        const double rise = rise_of(sums, curve.beta);
        shift += rise;
        if (!(rise > tolerance)) break;
    }
    return shift;
}

// ---- the results -----------------------------------------------------------------------------

// What to write for a row.
enum Written { NOTHING, PROBABILITIES, LOGARITHMS };

// Writes a row (n,) at its shift, and returns the energy.
template <class T, Written written>
TARGET double write_at_shift_in(const T *x, long n, const ShiftedRow<T> &row, T *out) {
    typedef typename Vector<T>::Type V;
    double energy = 0;
    for (long begin = 0; begin < n; begin += CHUNK<T>) {
        V part = {};
        for (long i = begin; i < n && i < begin + CHUNK<T>; i += Vector<T>::size) {
            const LogTerms<T> at = row.terms(load_at<T>(x, i, n));
            part += at.p > 0 ? at.p * at.base : V{};
            if (written == LOGARITHMS)
                store_at(out, i, n, at.inside ? at.log_p : V{} - (T)INFINITY);
            // A probability that is too small for T becomes the smallest number above 0.
            if (written == PROBABILITIES)
                store_at(out, i, n, at.inside & (at.p == 0) ? V{} + smallest<T>() : at.p);
        }
        energy += sum_of<T>(part);
    }
    return energy;
}

// Writes the probabilities or logarithms of a row (n,) at its shift to `out`, unless that is null,
// and returns the energy.
template <class T>
TARGET double write_at_shift(const T *x, long n, T maximum, double shift, const Curve &curve,
                             T *out, bool logs) {
    const ShiftedRow<T> row = ShiftedRow<T>::of(maximum, shift, curve);
    if (!out) return write_at_shift_in<T, NOTHING>(x, n, row, out);
    if (logs) return write_at_shift_in<T, LOGARITHMS>(x, n, row, out);
    return write_at_shift_in<T, PROBABILITIES>(x, n, row, out);
}

// Solves a row (n,). Unless `out` is null, writes probabilities or their logarithms, nan if the row
// has no solution. In the result, `threshold` is the shift, and there is no list.
template <class T>
TARGET Solved solve_in_logarithms(const T *x, long n, T maximum, const Curve &curve, T *out,
                                  bool logs) {
    if (!is_finite(maximum)) {
        for (long i = 0; out && i < n; ++i) out[i] = (T)NAN;
        return Solved::none(maximum);
    }
    const double shift = find_shift(x, n, maximum, curve);
    const double energy = write_at_shift(x, n, maximum, shift, curve, out, logs);
    // s + (sum(p^alpha) - 1) / alpha, which rounding may make negative.
    const double shifted = shift + (energy - 1) / curve.alpha;
    return {maximum, shift, shifted < 0 ? 0 : shifted, NO_LIST};
}
