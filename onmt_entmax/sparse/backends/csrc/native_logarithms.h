// A row solved in logarithms, under one instruction set: see native_instruction_sets.h.
//
// native_threshold.h solves a row in the power form, which magnifies rounding as alpha nears 1.
// Below 1.1, and in rows of attention, which are short, Newton's method runs on logarithms instead,
// in the type of the scores, for the shift s of log-probabilities:
//
//     log p = log1p(beta (x - max x - s)) / beta,  s = t + 1 / beta,
//
// which at alpha 1 is that of softmax, log p = x - max x - s.

// Below this alpha, the power form loses digits; whole orders are exact.
const double LOWEST_ALPHA_OF_POWERS = 1.1;
INLINE bool takes_logarithms(const Curve &curve) {
    return curve.whole == NOT_WHOLE && curve.alpha < LOWEST_ALPHA_OF_POWERS;
}

// Sums over a row (n,) at a shift; if there is `out`, write probabilities or their logarithms.
template <class T>
TARGET Sums at_shift(const T *x, long n, T maximum, double shift, const Curve &curve, T *out,
                     bool logs) {
    typedef typename Vector<T>::Of V;
    // The shift in two parts, since T has too few digits for it.
    const T high = (T)shift, low = (T)(shift - (double)high);
    const T beta = (T)curve.beta, order = (T)curve.order;
    Sums sums;
    for (long begin = 0; begin < n; begin += CHUNK<T>) {
        LaneSums<T> lanes;
        for (long i = begin; i < n && i < begin + CHUNK<T>; i += Vector<T>::size) {
            const V from_shift = ((load_at<T>(x, i, n) - maximum) - high) - low;
            const V u = from_shift * beta, base = 1 + u;  // p^beta
            const V log_p = beta == 0 ? from_shift : logarithm<T>(base, u) * order;
            const auto inside = beta == 0 ? from_shift > -(T)INFINITY : base > 0;
            const V e = exponential<T>(log_p), p = inside ? e : V{};
            lanes.total += p;
            lanes.slope += p > 0 ? p / base : V{};
            lanes.energy += p > 0 ? p * base : V{};
            if (!out) continue;
            if (logs)
                store_at(out, i, n, inside ? log_p : V{} - (T)INFINITY);
            else
                store_at(out, i, n, inside & (p == 0) ? V{} + smallest<T>() : p);
        }
        sums.total += sum_of<T>(lanes.total);
        sums.slope += sum_of<T>(lanes.slope);
        sums.energy += sum_of<T>(lanes.energy);
    }
    return sums;
}

// Newton's step to the shift at which the sum of the probabilities is 1. It is that of the norm in
// native_threshold.h, written so that nothing cancels near beta 0.
INLINE double rise_of(const Sums &sums, double beta) {
    const double excess = log(sums.total);
    if (beta == 0) return excess;
    return -sums.total * expm1(-beta * excess) / (beta * sums.slope);
}

// Solve a row (n,); if there is `out`, write probabilities or their logarithms, nan if it has no
// solution. The threshold is the shift, and there is no list.
template <class T>
TARGET Solved solve_in_logarithms(const T *x, long n, T maximum, const Curve &curve, T *out,
                                  bool logs) {
    if (!is_finite(maximum)) {
        for (long i = 0; out && i < n; ++i) out[i] = (T)NAN;
        return Solved::none(maximum);
    }
    const double tolerance = short_step<T>(n, curve);
    double shift = 0;
    for (int step = 0; step < MOST_STEPS; ++step) {
        const Sums sums = at_shift<T>(x, n, maximum, shift, curve, nullptr, false);
        const double rise = rise_of(sums, curve.beta);
        shift += rise;
        if (!(rise > tolerance)) break;
    }
    const Sums last = at_shift(x, n, maximum, shift, curve, out, logs);
    const double shifted = shift + (last.energy - 1) / curve.alpha;
    return {maximum, shift, shifted < 0 ? 0 : shifted, NO_LIST};
}
