// A row solved in logarithms, under one instruction set.
//
// native_threshold.h solves a row in the power form, which magnifies rounding as alpha nears 1.
// Below 1.1, and in rows of attention, which are short, Newton's method runs on logarithms instead,
// in the type of the scores:
//
//     log p = log1p(beta (x - m - s)) / beta,  s = t + 1 / beta.

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
