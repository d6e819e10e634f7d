// One row for alpha above 2, under one instruction set: see native_common.h.
//
// The slope of a probability is infinite at the threshold there, so that no threshold in float64
// determines the smallest ones. The unknowns are the anchor a, which is the smallest score of the
// support, and its probability u:
//
//     p = (u^beta + beta (x - a))^(1/beta).
//
//   1. Sparsemax of beta x has a lower threshold, since no probability is below its power of beta;
//      so steps 1 to 3 of native_threshold.h, and the method's end on sparsemax, list candidates.
//   2. The anchor is found among them by partitions, as in quicksort: a score is in the support if
//      the others, with itself on the threshold, sum to less than 1.
//   3. The sum of p is convex in u, so Newton's method falls to u from any upper bound. Each step
//      divides the excess times the slope by 4 or more (see `above_two` in solvers.py).

// Powers of beta of small numbers leave float64's range, whose exponents end at -1022 and 1023.
// They are kept times 2^LIFT; the largest is 1.
const int LIFT = 900;
// A lifted power below this was near the denormal numbers, or one, and may have lost digits.
const double SMALLEST_EXACT_POWER = 0x1p-100;

// The steps of Newton's method: (52 + bits of n) / 2 + 1 suffice, for any row below 2^26 scores.
const int FALLING_STEPS = 40;
// The rounding of a sum near 1; and an error of u that is a quarter of it, in relation to u.
const double MASS_SETTLED = 0x1p-52, ERROR_SETTLED = 0x1p-54;

// ---- probabilities and their sums ------------------------------------------------------------

// The parameters of all scores of a row.
struct Anchor {
    double score, probability;
    double power;  // probability^beta 2^LIFT
    double scale;  // beta 2^LIFT

    static Anchor of(double score, double probability, const Curve &curve) {
        double power = ldexp(pow(probability, curve.beta), LIFT);
        if (probability > 0 && power < SMALLEST_EXACT_POWER)
            power = exp2(curve.beta * log2(probability) + LIFT);
        return {score, probability, power, ldexp(curve.beta, LIFT)};
    }
};

// Probabilities of scores, 0 below the anchor, and their powers of beta, times 2^LIFT.
struct Raised {
    Doubles probability, power;

    static INLINE Raised of(Doubles score, const Anchor &anchor, const Curve &curve) {
        const Doubles apart = score - anchor.score, none = {};
        const Doubles power = apart * anchor.scale + anchor.power;
        const Doubles above = power_by_series<double>(power, curve.order, LIFT);
        const Doubles up_to = apart == 0 ? none + anchor.probability : none;
        return {apart > 0 ? above : up_to, power};
    }
};

// The sum of the probabilities of scores (n,) above a threshold.
template <class T>
TARGET double sum_above(const T *x, long n, T threshold, const Curve &curve) {
    const Anchor anchor = Anchor::of(threshold, 0, curve);
    Doubles total = {};
    for (long i = 0; i < n; i += 8)
        total += Raised::of(load_at<double>(x, i, n), anchor, curve).probability;
    return sum_of<double>(total);
}

// The sums over a support (n,), with the slope in u, and the energy times 2^LIFT.
template <class T>
TARGET Sums sums_at(const T *x, long n, const Anchor &anchor, const Curve &curve) {
    const Doubles none = {};
    LaneSums<double> lanes;
    for (long i = 0; i < n; i += 8) {
        const Raised at = Raised::of(load_at<double>(x, i, n), anchor, curve);
        const auto inside = at.probability > 0, above = at.probability > anchor.probability;
        lanes.total += at.probability;
        lanes.energy += inside ? at.probability * at.power : none;
        const Doubles ratio = anchor.power / at.power;
        // Where u^beta rounds to 0, the slope at the anchor is still 1.
        const Doubles up_to = inside ? none + 1 : none;
        lanes.slope += above ? at.probability / anchor.probability * ratio : up_to;
    }
    return {sum_of<double>(lanes.total), sum_of<double>(lanes.slope), sum_of<double>(lanes.energy)};
}

// ---- 1. candidates ---------------------------------------------------------------------------

// Which entries of a list to move.
enum Moved { ABOVE, ABOVE_OR_EQUAL };

// Move the entries of a list from `begin` to `end` to the front that are above a score, or equal to
// it if `moved` says so; return their end.
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

// List the scores of a row (n,) above a bound of sparsemax's threshold; return their number.
template <class T>
TARGET long list_above_two(const T *x, long n, T maximum, const Curve &curve, Scratch<T> scratch) {
    double bound = bound_by_blocks(n, maximum, curve, scratch);
    const long count = list_candidates(x, n, cut_of(maximum, bound), n, scratch);
    if (count <= MANY) return count;
    bound = climb<T, T>(scratch.score, count, maximum, bound, curve.bounding(), 0.0).threshold -
            bound_rounding<T>(curve);
    return move_to_front(scratch, 0, count, cut_of(maximum, bound), ABOVE);
}

// ---- 2. the anchor ---------------------------------------------------------------------------

// The support of a row, which is the beginning of its list.
template <class T>
struct AnchoredSupport {
    long members;
    T anchor;
    double others;  // the sum of the others' probabilities with the anchor on the threshold
};

template <class T>
INLINE T middle_of(T a, T b, T c) {
    const T low = a < b ? a : b, high = a < b ? b : a;
    if (c < low) return low;
    return c > high ? high : c;
}

// Find the support among the first `count` candidates of a list.
template <class T>
TARGET AnchoredSupport<T> find_support(Scratch<T> list, long count, T maximum, const Curve &curve) {
    AnchoredSupport<T> found = {0, maximum, 0};
    // The first members are in the support; those from `count` on are not.
    while (found.members < count) {
        const T score = middle_of(list.score[found.members],
                                  list.score[(found.members + count) / 2], list.score[count - 1]);
        const double others = sum_above(list.score, count, score, curve);
        if (others < 1) {
            const long members = move_to_front(list, found.members, count, score, ABOVE_OR_EQUAL);
            found = {members, score, others};
        } else {
            count = move_to_front(list, found.members, count, score, ABOVE);
        }
    }
    return found;
}

// ---- 3. its probability ----------------------------------------------------------------------

// Where steps ended: u; and before the last step u^beta / beta, by which the anchor exceeds the
// threshold, and the sum of p^alpha.
struct Fall {
    double probability, margin, energy;
};

// Find the anchor's probability, given the scores (members,) of the support.
template <class T>
TARGET Fall fall(const T *x, const AnchoredSupport<T> &support, const Curve &curve) {
    long equal = 0;
    for (long k = 0; k < support.members; ++k) equal += x[k] == support.anchor;
    // Scores that equal the anchor have probability u, and no slope is above that of all members.
    const double rest = 1 - support.others, least = rest / support.members;
    Fall last = {fmin(1.0 / support.members, rest / equal), 0, 0};
    for (int step = 0; step < FALLING_STEPS; ++step) {
        const Anchor at = Anchor::of(support.anchor, last.probability, curve);
        const Sums sums = sums_at(x, support.members, at, curve);
        const double excess = sums.total - 1;
        const double following = fmax(last.probability - excess / sums.slope, least);
        const double change = (last.probability - following) / last.probability;
        last = {following, ldexp(at.power, -LIFT) * curve.order, ldexp(sums.energy, -LIFT)};
        // The relative error is at most beta times the square of the change.
        const double error = curve.beta * change * change;
        if (!(excess > MASS_SETTLED && error > ERROR_SETTLED)) break;
    }
    return last;
}

// ---- one row ---------------------------------------------------------------------------------

// Solve a row (n,); the list holds its support. The threshold is the anchor itself.
template <class T>
TARGET Solved solve_above_two(const T *x, long n, const Curve &curve, Scratch<T> scratch) {
    const T maximum = block_maxima(x, n, scratch.maxima);
    if (!is_finite(maximum)) return Solved::none(maximum);
    const long count = list_above_two(x, n, maximum, curve, scratch);
    const AnchoredSupport<T> support = find_support(scratch, count, maximum, curve);
    if (support.members == 1) return {maximum, support.anchor, 0, 1, 1};
    const Fall last = fall(scratch.score, support, curve);
    // The dual objective, flat at the solution, at the last sums.
    const double threshold = (double)support.anchor - (double)maximum - last.margin;
    const double shifted = threshold + (last.energy + curve.order) / curve.alpha;
    return {maximum, support.anchor, shifted < 0 ? 0 : shifted, support.members, last.probability};
}

// Replace the scores of the support by their probabilities or logarithms.
template <class T>
TARGET void finish_support(Scratch<T> list, const Solved &solved, const Curve &curve, bool logs) {
    const Anchor anchor = Anchor::of(solved.threshold, solved.least, curve);
    for (long i = 0; i < solved.count; i += 8) {
        const Doubles scores = load_at<double>(list.score, i, solved.count);
        const Doubles p = Raised::of(scores, anchor, curve).probability;
        for (long lane = 0; lane < 8 && i + lane < solved.count; ++lane)
            list.score[i + lane] = (T)(logs ? log(p[lane]) : p[lane]);
    }
}

// Write the probabilities of a row (n,) that was solved before.
template <class T>
TARGET void write_above_two(const T *x, long n, double score, double least, const Curve &curve,
                            T *out) {
    const Anchor anchor = Anchor::of(score, least, curve);
    for (long i = 0; i < n; i += 8) {
        const Doubles p = Raised::of(load_at<double>(x, i, n), anchor, curve).probability;
        for (long lane = 0; lane < 8 && i + lane < n; ++lane) out[i + lane] = (T)p[lane];
    }
}
