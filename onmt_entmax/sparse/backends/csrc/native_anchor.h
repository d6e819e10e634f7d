// One row for alpha above 2, under one instruction set: see native_dispatch.h.
//
// Above alpha 2, a probability has an infinite slope at the threshold, so the smallest
// probabilities depend on digits that a float64 threshold does not have. Therefore, the unknowns
// are the anchor a, which is the smallest score of the support, and its probability u. The
// probability of a score x of the support is, with beta = alpha - 1,
//
//     p = (u^beta + beta (x - a))^(1/beta).
//
//   1. No probability is below its power of beta. So the threshold of sparsemax of beta x is lower,
//      and the candidates for the support are the scores above it. Steps 1 to 3 of
//      native_threshold.h list scores above a bound of that threshold, and Newton's method finds it
//      from these.
//   2. The anchor is found among the candidates by partitions, as in quicksort. A score is in the
//      support if, with it as the threshold, the probabilities of the others sum to less than 1.
//   3. The sum of p is a convex function of u, so Newton's method falls to u from any upper bound.
//      The excess is the sum minus 1. Each step divides the product of excess and slope by 4 or
//      more (see `above_two` in solvers.py).
//
// native_kernels.h includes native_row.h before, whose headers have what is used here: blocks and
// thresholds (native_threshold.h), lists (native_candidates.h), sums (native_newton.h) and powers
// (native_elementary.h).

// u^beta is often too small for float64, whose smallest number with all digits is 2^-1022: at alpha
// 8, a probability of 2^-150 gives 2^-1050. No such power is above 1, so all of them are kept times
// 2^LIFT, which leaves room up to 2^1023.
const int LIFT = 900;
// `pow` computes u^beta before it is lifted. It loses digits below 2^-1022, which is 2^-122 after
// lifting. Below this bound, a little higher, logarithms compute the lifted power.
const double SMALLEST_EXACT_POWER = 0x1p-100;

// The most steps of Newton's method. The excess times the slope falls from at most n to 2^-52, two
// bits a step, so (52 + bits of n) / 2 + 1 steps suffice: 40 for fewer than 2^26 scores.
const int FALLING_STEPS = 40;
// Steps end if the sum exceeds 1 by no more than its rounding, or if the relative error of u is no
// more than a quarter of that.
const double MASS_SETTLED = 0x1p-52, ERROR_SETTLED = 0x1p-54;

// ---- probabilities and their sums ------------------------------------------------------------

// The anchor of a row, with what the probabilities of all its scores depend on.
struct Anchor {
    double score, probability;  // a and u
    double power;  // probability^beta 2^LIFT
    double scale;  // beta 2^LIFT

    static Anchor of(double score, double probability, const Curve &curve) {
        double power = ldexp(pow(probability, curve.beta), LIFT);
        if (probability > 0 && power < SMALLEST_EXACT_POWER)
            power = exp2(curve.beta * log2(probability) + LIFT);
        return {score, probability, power, ldexp(curve.beta, LIFT)};
    }
};

// Probabilities of scores, 0 below the anchor; and their powers of beta, times 2^LIFT.
struct PowerTerms {
    Doubles probability, power;

    static INLINE PowerTerms of(Doubles score, const Anchor &anchor, const Curve &curve) {
        const Doubles difference = score - anchor.score, none = {};
        const Doubles power = difference * anchor.scale + anchor.power;
        const Doubles above = power_by_series<double>(power, curve.order, LIFT);
        const Doubles at_anchor = difference == 0 ? none + anchor.probability : none;
        return {difference > 0 ? above : at_anchor, power};
    }
};

// The sum of the probabilities of scores (n,) above a threshold.
template <class T>
TARGET double sum_above(const T *x, long n, T threshold, const Curve &curve) {
    const Anchor anchor = Anchor::of(threshold, 0, curve);
    Doubles total = {};
    for (long i = 0; i < n; i += DOUBLE_LANES)
        total += PowerTerms::of(load_at<double>(x, i, n), anchor, curve).probability;
    return sum_of<double>(total);
}

// The sums over a support (n,). The slope is the derivative with respect to u; the energy is
// multiplied by 2^LIFT.
template <class T>
TARGET Sums sums_at(const T *x, long n, const Anchor &anchor, const Curve &curve) {
    const Doubles none = {};
    LaneSums<double> lanes;
    for (long i = 0; i < n; i += DOUBLE_LANES) {
        const PowerTerms at = PowerTerms::of(load_at<double>(x, i, n), anchor, curve);
        const auto inside = at.probability > 0, above = at.probability > anchor.probability;
        lanes.total += at.probability;
        lanes.energy += inside ? at.probability * at.power : none;
        const Doubles ratio = anchor.power / at.power;
        // The slope of the anchor's own probability is 1, even if u^beta rounds to 0.
        const Doubles at_anchor = inside ? none + 1 : none;
        lanes.slope += above ? at.probability / anchor.probability * ratio : at_anchor;
    }
    return {sum_of<double>(lanes.total), sum_of<double>(lanes.slope), sum_of<double>(lanes.energy)};
}

// ---- 1. candidates ---------------------------------------------------------------------------

// Which entries of a list `move_to_front` moves: those above a score, or also those equal to it.
enum Moved { ABOVE, ABOVE_OR_EQUAL };

// Among the entries of a list from `begin` up to `end`, moves those that `moved` says to the front;
// returns where they end.
template <class T>
TARGET long move_to_front(Scratch<T> list, long begin, long end, T score, Moved moved) {
    for (long k = begin; k < end; ++k) {
        const T own = list.score[k];
        if (!(own > score || (moved == ABOVE_OR_EQUAL && own == score))) continue;
        const int column = list.column[k];
        list.score[k] = list.score[begin], list.column[k] = list.column[begin];
        list.score[begin] = own, list.column[begin++] = column;
    }
    return begin;
}

// Lists the scores of a row (n,) above a lower bound of sparsemax's threshold; returns their count.
template <class T>
TARGET long list_above_two(const T *x, long n, T maximum, const Curve &curve, Scratch<T> scratch) {
    double bound = bound_by_blocks(n, maximum, curve, scratch);
    const long count = list_candidates(x, n, cut_of(maximum, bound), n, scratch);
    if (count <= FEW_SCORES) return count;
    bound = climb<T, T>(scratch.score, count, maximum, bound, curve.bounding(), 0.0).threshold -
            bound_rounding<T>(curve);
    return move_to_front(scratch, 0, count, cut_of(maximum, bound), ABOVE);
}

// ---- 2. the anchor ---------------------------------------------------------------------------

// The support of a row, which is the beginning of its list.
template <class T>
struct AnchoredSupport {
    long members;   // number of scores
    T anchor;       // the smallest of them
    double others;  // sum of the probabilities of the others, if the anchor were the threshold
};

// The median of three numbers.
template <class T>
INLINE T middle_of(T a, T b, T c) {
    const T low = a < b ? a : b, high = a < b ? b : a;
    if (c < low) return low;
    return c > high ? high : c;
}

// Finds the support among the first `count` candidates of a list, and moves it to the front.
template <class T>
TARGET AnchoredSupport<T> find_support(Scratch<T> list, long count, T maximum, const Curve &curve) {
    AnchoredSupport<T> support = {0, maximum, 0};
    // Entries [0, members) are in the support, entries from `count` on are outside. Those between
    // are still to be decided.
    while (support.members < count) {
        const T pivot =
            middle_of(list.score[support.members], list.score[(support.members + count) / 2],
                      list.score[count - 1]);
        const double others = sum_above(list.score, count, pivot, curve);
        if (others < 1) {
            const long members = move_to_front(list, support.members, count, pivot, ABOVE_OR_EQUAL);
            support = {members, pivot, others};
        } else {
            count = move_to_front(list, support.members, count, pivot, ABOVE);
        }
    }
    return support;
}

// ---- 3. its probability ----------------------------------------------------------------------

// The result of Newton's method. Margin and energy belong to the u before the last step.
struct NewtonResult {
    double probability;  // u
    double margin;       // u^beta / beta, by which the anchor exceeds the threshold
    double energy;       // the sum of p^alpha
};

// Finds the anchor's probability, given the scores (members,) of the support.
template <class T>
TARGET NewtonResult anchor_probability(const T *x, const AnchoredSupport<T> &support,
                                       const Curve &curve) {
    long equal = 0;
    for (long k = 0; k < support.members; ++k) equal += x[k] == support.anchor;
    // Two upper bounds of u: it is the smallest probability of the members, and each score that
    // equals the anchor has it. A lower bound: the sum's slope is at most the number of members.
    const double remainder = 1 - support.others, lower_bound = remainder / support.members;
    NewtonResult result = {fmin(1.0 / support.members, remainder / equal), 0, 0};
    for (int step = 0; step < FALLING_STEPS; ++step) {
        const Anchor at = Anchor::of(support.anchor, result.probability, curve);
        const Sums sums = sums_at(x, support.members, at, curve);
        const double excess = sums.total - 1;
        const double following = fmax(result.probability - excess / sums.slope, lower_bound);
        const double change = (result.probability - following) / result.probability;
        result = {following, ldexp(at.power, -LIFT) * curve.order, ldexp(sums.energy, -LIFT)};
        // The relative error is at most beta times the square of the change.
        const double error = curve.beta * change * change;
        if (!(excess > MASS_SETTLED && error > ERROR_SETTLED)) break;
    }
    return result;
}

// ---- one row ---------------------------------------------------------------------------------

// Solves a row (n,). Afterwards, the list has its support. The `threshold` is the anchor itself.
template <class T>
TARGET Solved solve_above_two(const T *x, long n, const Curve &curve, Scratch<T> scratch) {
    const T maximum = block_maxima(x, n, scratch.maxima);
    if (!is_finite(maximum)) return Solved::none(maximum);
    const long count = list_above_two(x, n, maximum, curve, scratch);
    const AnchoredSupport<T> support = find_support(scratch, count, maximum, curve);
    if (support.members == 1) return {maximum, support.anchor, 0, 1, 1};
    const NewtonResult result = anchor_probability(scratch.score, support, curve);
    // The dual objective at the u of the last sums: it is flat near the solution, so this is exact
    // enough.
    const double threshold = (double)support.anchor - (double)maximum - result.margin;
    const double shifted = threshold + (result.energy + curve.order) / curve.alpha;
    return {maximum, support.anchor, shifted < 0 ? 0 : shifted, support.members,
            result.probability};
}

// Replaces the scores of the support by their probabilities or logarithms.
template <class T>
TARGET void finish_support(Scratch<T> list, const Solved &solved, const Curve &curve, bool logs) {
    const Anchor anchor = Anchor::of(solved.threshold, solved.least, curve);
    for (long i = 0; i < solved.count; i += DOUBLE_LANES) {
        const Doubles scores = load_at<double>(list.score, i, solved.count);
        const Doubles p = PowerTerms::of(scores, anchor, curve).probability;
        for (long lane = 0; lane < DOUBLE_LANES && i + lane < solved.count; ++lane)
            list.score[i + lane] = (T)(logs ? log(p[lane]) : p[lane]);
    }
}

// Writes the probabilities of a row (n,) that was solved before, given the score and the
// probability of its anchor.
template <class T>
TARGET void write_above_two(const T *x, long n, double score, double least, const Curve &curve,
                            T *out) {
    const Anchor anchor = Anchor::of(score, least, curve);
    for (long i = 0; i < n; i += DOUBLE_LANES) {
        const Doubles p = PowerTerms::of(load_at<double>(x, i, n), anchor, curve).probability;
        for (long lane = 0; lane < DOUBLE_LANES && i + lane < n; ++lane) out[i + lane] = (T)p[lane];
    }
}
