// The threshold of one row up to alpha 2, under one instruction set: see native_dispatch.h.
//
// Entmax of a row x is p = (beta u)^(1/beta), with beta = alpha - 1, the threshold t and the
// margins u = [x - max x - t]_+ (docs/mappings.md has the derivation). The probabilities sum to 1
// if the norm of the margins, of order q = 1/beta, is q. The norm is a convex function of t and
// falls with it, so Newton's method climbs to the right t from any lower bound:
//
//   1. one pass for the maxima of blocks of a long row, which the caches hold from then on;
//   2. a few steps on these maxima: the threshold of a part of a row is a lower bound of the row's;
//   3. a search for the scores above the bound, in the blocks whose maximum is above it;
//   4. Newton's method in float64 on these candidates if they are few; otherwise on the whole row,
//      in its own type up to that type's precision, and then in float64.

#include "sparse/backends/csrc/native_candidates.h"

// For up to this many scores, a first approximation costs more than it saves: steps in float32, or
// the threshold of sparsemax.
const long FEW_SCORES = 48;
// Steps on the maxima of blocks. Their threshold is only a bound, so more steps would not pay.
const int STEPS_ON_MAXIMA = 3;
// A step in float32 that is at most this long, 34 machine epsilons, is rounding, and the last one.
const double STEP_IN_FLOAT32 = 4e-6;
// A threshold whose relative difference to the lowest one is at most this, two machine epsilons, is
// that of a one-hot row: the difference is rounding.
const double ONE_HOT_ROUNDING = 0x1p-51;

// The solution of a row, by one of three solvers:
//
//     solver                            `threshold`           the list has
//     `solve`, up to alpha 2            t, relative to max x  candidates: the support and scores on
//                                                             the threshold; may be NO_LIST
//     `solve_in_logarithms`, near 1     the shift s           NO_LIST
//     `solve_above_two`                 the anchor itself     the support
struct Solved {
    double maximum, threshold;
    double shifted;    // the shifted conjugate
    long count;        // of scores in the list, or NO_LIST
    double least = 0;  // above alpha 2, the smallest probability, that of the anchor

    // A row without a solution: its maximum is nan or infinite.
    static Solved none(double maximum) { return {maximum, (double)NAN, (double)NAN, NO_LIST}; }

    bool has_list() const { return count != NO_LIST; }
    bool has_solution() const { return threshold == threshold; }
};

INLINE bool is_finite(double x) { return x < INFINITY && x > -INFINITY; }

// A number above the rounding error of a threshold that was computed in T. A threshold minus this
// is a lower bound.
template <class T>
INLINE double bound_rounding(const Curve &curve) {
    return 32 * epsilon<T>() * curve.order;
}

// The cut for `list_candidates`: the next smaller number than a lower bound of the threshold.
template <class T>
INLINE T cut_of(T maximum, double bound) {
    return below_of((T)(maximum + bound));
}

// A lower bound of the threshold of a row (n,): from the maxima of its blocks, if there are
// several, else the lowest threshold of all.
template <class T>
TARGET double bound_by_blocks(long n, T maximum, const Curve &curve, Scratch<T> scratch) {
    const long blocks = Blocks<T>::of(n).count;
    const double lowest = curve.lowest_threshold();
    if (blocks == 1) return lowest;
    const Climb last = climb<T, T>(scratch.maxima, blocks * Vector<T>::size, maximum, lowest,
                                   curve.bounding(), 0.0, STEPS_ON_MAXIMA);
    return last.threshold - bound_rounding<T>(curve);
}

// The shifted conjugate is the minimum of the dual objective. This is flat near the threshold, so
// its value at the threshold before the last step, of which there are sums, is exact enough. It is
// never negative, and 0 if the maximum alone is in the support.
INLINE double conjugate_of(const Climb &last, const Curve &curve) {
    if (last.threshold <= curve.lowest_threshold() * (1 - ONE_HOT_ROUNDING)) return 0;
    const double energy = last.sums.energy * curve.energy_factor;
    const double shifted = last.before + (energy + curve.order) / curve.alpha;
    return shifted < 0 ? 0 : shifted;
}

// Solves a row (n,). If the candidates are few, they are listed in `scratch`.
template <class T>
TARGET Solved solve(const T *x, long n, const Curve &curve, Scratch<T> scratch) {
    const T maximum = block_maxima(x, n, scratch.maxima);
    if (!is_finite(maximum)) return Solved::none(maximum);
    double bound = bound_by_blocks(n, maximum, curve, scratch);
    // With more than half of a long row in the list, listing would cost more than it saves.
    const long most = n < LENGTH_OF_BLOCKS ? n : n / 2;
    const long count = list_candidates(x, n, cut_of(maximum, bound), most, scratch);
    const T *scores = count == NO_LIST ? x : scratch.score;
    const long size = count == NO_LIST ? n : count;
    if (sizeof(T) == 4 && size > FEW_SCORES)
        bound = climb<T, T>(scores, size, maximum, bound, curve, STEP_IN_FLOAT32).threshold;
    const Climb last =
        climb<double, T>(scores, size, maximum, bound, curve, short_step<T>(n, curve));
    return {maximum, last.threshold, conjugate_of(last, curve), count};
}
