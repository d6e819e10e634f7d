// Newton's method for a row's threshold, under one instruction set: see native_threshold.h.
//
// Template parameters: T is the type of the scores, C the type to compute in.

#include "sparse/backends/csrc/native_elementary.h"

// Three sums over a row at an iterate of Newton's method. Each solver omits some constant factors
// of these.
struct Sums {
    double total = 0;   // of the probabilities p
    double slope = 0;   // of the derivatives of p with respect to the solver's unknown
    double energy = 0;  // of p^alpha, for the conjugate
};

// A limit for safety. Steps end when the threshold no longer rises, after far fewer.
const int MOST_STEPS = 100;

template <class T>
INLINE double epsilon() {
    return sizeof(T) == 4 ? 0x1p-23 : 0x1p-52;
}

// After a step from a lower bound that is at most this long, the error is below the precision of T.
// From order 2 on, the second derivative of the norm is at most n / 2, so the error is at most
// about n times the square of the step. Below order 2 the second derivative has no bound, since
// scores leave the support one by one; there, only a step below the precision itself is the last.
template <class T>
INLINE double short_step(long n, const Curve &curve) {
    return curve.order >= 2 ? sqrt(epsilon<T>() / n) : epsilon<T>() / n;
}

// ---- sums of powers --------------------------------------------------------------------------

// The sums of each lane, in type C.
template <class C>
struct LaneSums {
    typename Vector<C>::Type total = {}, slope = {}, energy = {};
};

// Adds powers of margins u with order q: u^q to the totals, u^(q - 1) to the slopes, and u^(q + 1)
// to the energies. The energy is only needed in the last steps, which are in float64.
template <class T, class C, Form form>
INLINE void add_powers(typename Vector<C>::Type u, const Curve &curve, LaneSums<C> &lanes) {
    u = u > 0 ? u : typename Vector<C>::Type{};
    const typename Vector<C>::Type derivative = power_below<T, form>(u, curve), p = derivative * u;
    lanes.slope += derivative;
    lanes.total += p;
    if (sizeof(C) == 8) lanes.energy += p * u;
}

// The sums over scores (n,) of type T, computed in C. The threshold is relative to the maximum.
template <class C, class T, Form form>
TARGET Sums sums_in(const T *x, long n, double maximum, double threshold, const Curve &curve) {
    const long size = Vector<C>::size;
    const C top = (C)maximum, cut = (C)threshold;
    Sums sums;
    for (long i = 0; i < n;) {
        LaneSums<C> lanes;
        const long end = i + CHUNK<C> < n ? i + CHUNK<C> : n;
        for (; i + size <= end; i += size)
            add_powers<T, C, form>((Load<C, T>::from(x + i) - top) - cut, curve, lanes);
        if (i < end) {
            add_powers<T, C, form>((load_part<C, T>(x + i, end - i) - top) - cut, curve, lanes);
            i = end;
        }
        sums.slope += sum_of<C>(lanes.slope);
        sums.total += sum_of<C>(lanes.total);
        if (sizeof(C) == 8) sums.energy += sum_of<C>(lanes.energy);
    }
    return sums;
}

template <class C, class T>
INLINE Sums sums_of_powers(const T *x, long n, double maximum, double threshold,
                           const Curve &curve) {
    const Form form = curve.form();
    if (form == ONE) return sums_in<C, T, ONE>(x, n, maximum, threshold, curve);
    if (form == TWO) return sums_in<C, T, TWO>(x, n, maximum, threshold, curve);
    if (form == WHOLE) return sums_in<C, T, WHOLE>(x, n, maximum, threshold, curve);
    return sums_in<C, T, ANY>(x, n, maximum, threshold, curve);
}

// ---- steps -----------------------------------------------------------------------------------

// How the steps ended.
struct Climb {
    double threshold;  // after the last step
    double before;     // the threshold before the last step
    Sums sums;         // at `before`
};

// Climbs from a lower bound of the threshold of scores (n,) of type T, computing in C. A step of at
// most `tolerance` is the last one.
template <class C, class T>
TARGET Climb climb(const T *x, long n, double maximum, double bound, const Curve &curve,
                   double tolerance, int most_steps = MOST_STEPS) {
    Climb last = {bound, bound, {}};
    for (int step = 0; step < most_steps; ++step) {
        last.sums = sums_of_powers<C, T>(x, n, maximum, last.threshold, curve);
        last.before = last.threshold;
        const double norm = curve.norm(last.sums.total);
        const double excess = norm - curve.norm_at_threshold;
        const double rise = excess * (last.sums.total / norm) / last.sums.slope;
        last.threshold += rise;
        if (!(rise > tolerance)) break;
    }
    return last;
}
