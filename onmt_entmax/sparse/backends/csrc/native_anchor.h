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
//      divides the excess times the slope by 4 or more (see solvers.py).
//
// Powers of beta of small numbers leave float64's range. They are kept times 2^LIFT.

enum { LIFT = 900 };

// The parameters of all scores of a row.
struct Anchor {
    double score, probability;
    double power;  // probability^beta 2^LIFT
    double scale;  // beta 2^LIFT

    static Anchor of(double score, double probability, const Curve &curve) {
        double power = ldexp(pow(probability, curve.beta), LIFT);
        // A smaller power would lose digits, and its logarithm has no more of them.
        if (probability > 0 && power < 0x1p-100)
            power = exp2(curve.beta * log2(probability) + LIFT);
        return {score, probability, power, ldexp(curve.beta, LIFT)};
    }
};

// Probabilities of scores, 0 below the anchor, and their powers of beta, times 2^LIFT.
struct Raised {
    Doubles probability, power;
};
INLINE Raised raised(Doubles score, const Anchor &anchor, const Curve &curve) {
    const Doubles apart = score - anchor.score, none = {};
    const Doubles power = apart * anchor.scale + anchor.power;
    const Doubles p = power_by_series<double>(power, curve.order, LIFT);
    return {apart > 0 ? p : apart == 0 ? none + anchor.probability : none, power};
}

template <class T>
INLINE Doubles load_eight(const T *x, long i, long n) {
    return i + 8 <= n ? Load<double, T>::from(x + i) : load_part<double, T>(x + i, n - i);
}

// The sum of the probabilities of scores above a threshold.
template <class T>
TARGET double sum_above(const T *x, long n, T threshold, const Curve &curve) {
    const Anchor anchor = Anchor::of(threshold, 0, curve);
    Doubles total = {};
    for (long i = 0; i < n; i += 8) total += raised(load_eight(x, i, n), anchor, curve).probability;
    return sum_of<double>(total);
}

// The sums over the support, the slope that in u, and energy times 2^LIFT.
template <class T>
TARGET Totals sums_at(const T *x, long n, const Anchor &anchor, const Curve &curve) {
    Doubles slope = {}, total = {}, energy = {};
    for (long i = 0; i < n; i += 8) {
        const Raised at = raised(load_eight(x, i, n), anchor, curve);
        total += at.probability;
        energy += at.probability > 0 ? at.probability * at.power : Doubles{};
        // Where u^beta rounds to 0, the slope at the anchor is still 1.
        const Doubles ratio = anchor.power / at.power;
        const auto others = at.probability > anchor.probability;
        slope += others ? at.probability / anchor.probability * ratio
                        : at.probability > 0 ? Doubles{} + 1 : Doubles{};
    }
    return {sum_of<double>(slope), sum_of<double>(total), sum_of<double>(energy)};
}

template <class T>
INLINE T middle_of(T a, T b, T c) {
    const T low = a < b ? a : b, high = a < b ? b : a;
    return c < low ? low : c > high ? high : c;
}

// Move the entries of a list from ``begin`` to ``end`` to the front that are at least a score, or
// only those above it; return their end.
template <class T>
TARGET long move_to_front(Room<T> room, long begin, long end, T score, bool also_equal) {
    for (long k = begin; k < end; ++k) {
        const T own = room.score[k];
        if (!(own > score || (also_equal && own == score))) continue;
        const int column = room.column[k];
        room.score[k] = room.score[begin], room.column[k] = room.column[begin];
        room.score[begin] = own, room.column[begin++] = column;
    }
    return begin;
}

// Solve a row; the list holds its support. The threshold is the anchor itself.
template <class T>
TARGET Solved solve_above_two(const T *x, long n, const Curve &curve, Room<T> room) {
    const long depth = depth_of<T>(n);
    const T maximum = block_maxima(x, n, depth, room.maxima);
    if (!(maximum < INFINITY && maximum > -INFINITY))
        return {maximum, (double)NAN, (double)NAN, -1};
    double bound = bound_by_blocks(n, depth, maximum, curve, room);
    long count = candidates(x, n, depth, below_of((T)(maximum + bound)), n, room);
    if (count > MANY) {
        Totals last;
        double before;
        bound = climb<T, T>(room.score, count, maximum, bound, curve.bounding(), 0.0, 100, last,
                            before);
        bound -= 32 * epsilon<T>() * curve.order;
        count = move_to_front(room, 0, count, below_of((T)(maximum + bound)), false);
    }
    long members = 0;
    T anchor = maximum;
    double rest = 0;  // the sum of the others with the anchor on the threshold
    while (members < count) {
        const T score = middle_of(room.score[members], room.score[(members + count) / 2],
                                  room.score[count - 1]);
        const double total = sum_above(room.score, count, score, curve);
        if (total < 1) {
            members = move_to_front(room, members, count, score, true);
            anchor = score, rest = total;
        } else {
            count = move_to_front(room, members, count, score, false);
        }
    }
    if (members == 1) return {maximum, anchor, 0, 1, 1};
    long equal = 0;
    for (long k = 0; k < members; ++k) equal += room.score[k] == anchor;
    const double least = (1 - rest) / members;
    double probability = fmin(1.0 / members, (1 - rest) / equal), energy = 0, below = 0;
    for (int step = 0; step < 40; ++step) {
        const Anchor at = Anchor::of(anchor, probability, curve);
        const Totals sums = sums_at(room.score, members, at, curve);
        const double excess = sums.total - 1;
        const double following = fmax(probability - excess / sums.slope, least);
        const double change = (probability - following) / probability;
        energy = ldexp(sums.energy, -LIFT), below = ldexp(at.power, -LIFT) * curve.order;
        probability = following;
        // The relative error is at most beta times the square of the change.
        if (!(excess > 0x1p-52 && curve.beta * change * change > 0x1p-54)) break;
    }
    // The dual objective, flat at the solution, at the last sums.
    const double shifted =
        (double)anchor - (double)maximum - below + (energy + curve.order) / curve.alpha;
    return {maximum, anchor, shifted < 0 ? 0 : shifted, members, probability};
}

// Replace the scores of the support by their probabilities or logarithms.
template <class T>
TARGET void finish_support(Room<T> room, const Solved &solved, const Curve &curve, bool logs) {
    const Anchor anchor = Anchor::of(solved.threshold, solved.least, curve);
    for (long i = 0; i < solved.count; i += 8) {
        const Doubles p = raised(load_eight(room.score, i, solved.count), anchor, curve).probability;
        const long left = solved.count - i < 8 ? solved.count - i : 8;
        for (long lane = 0; lane < left; ++lane)
            room.score[i + lane] = (T)(logs ? log(p[lane]) : p[lane]);
    }
}

// Write a row whose finished support is in the list.
template <class T>
TARGET void spread_support(Room<T> room, long n, const Solved &solved, bool logs, T *out) {
    const T outside = solved.count < 0 ? (T)NAN : logs ? -(T)INFINITY : (T)0;
    for (long i = 0; i < n; ++i) out[i] = outside;
    for (long k = 0; k < solved.count; ++k) out[room.column[k]] = room.score[k];
}

// Write the probabilities of a row that was solved before.
template <class T>
TARGET void write_above_two(const T *x, long n, double score, double least, const Curve &curve,
                            T *out) {
    const Anchor anchor = Anchor::of(score, least, curve);
    for (long i = 0; i < n; i += 8) {
        const Doubles p = raised(load_eight(x, i, n), anchor, curve).probability;
        for (long lane = 0; lane < 8 && i + lane < n; ++lane) out[i + lane] = (T)p[lane];
    }
}
