// The gradients of one row above alpha 2, with respect to its scores and to alpha, under one
// instruction set: see native_dispatch.h.
//
// Let beta = alpha - 1, and for each score of the support
//
//     p    probability; if dropout dropped it, the row has the weight -p, and v is 0
//     v    upstream gradient with respect to p, `incoming` in structs
//     s    Jacobian weight, p^(1 - beta)
//     m    mean of v, weighted by s: sum(s v) / sum(s)
//
// The gradient with respect to the scores is s (v - m); the gradient with respect to alpha is
// -sum(p k (v - m)), with
//
//     p k = -p (1 - beta log p) / beta^2.
//
// `gradients` of derivatives.py derives them. Near the threshold s may be huge: for a probability
// of 1e-60 at alpha 8 it is 1e360, which is infinite in float64. Hence three differences from
// native_gradient.h:
//
//   - Everything is computed in float64, s by its logarithm, and m from weights divided by the
//     largest s.
//   - The gradients with respect to the scores add up to 0. So the one with the largest s is minus
//     the sum of the others.
//   - A multiple of s is left out of p k. It adds nothing to the gradient.
//
// native_kernels.h includes native_gradient.h before, which has `GradientRow`, and what that needs.

// `exp` of more than this is infinite in float64.
const double LARGEST_EXPONENT = 709;

// The support of a row in its order. Entries from `count` on pad the last vector: p is 1, v is 0,
// and log s is -inf.
struct Support {
    double *probability, *incoming, *log_weight;  // p, v, log s
    int *column;                                  // of each entry in the row
    long count;
    bool has_nan;  // whether a p or v is nan

    // Takes memory for rows of up to n scores.
    static Support up_to(long n, Memory &memory) {
        const long padded = n + DOUBLE_LANES;
        Support support = {};
        support.probability = (double *)memory.take(padded * sizeof(double));
        support.incoming = (double *)memory.take(padded * sizeof(double));
        support.log_weight = (double *)memory.take(padded * sizeof(double));
        support.column = (int *)memory.take(padded * sizeof(int));
        return support;
    }

    INLINE Doubles probabilities_at(long k) const {
        return Load<double, double>::from(probability + k);
    }
    INLINE Doubles incoming_at(long k) const { return Load<double, double>::from(incoming + k); }
    INLINE Doubles log_weights_at(long k) const {
        return Load<double, double>::from(log_weight + k);
    }
};

// ---- the support -----------------------------------------------------------------------------

// Lists p and v of a row. With dropout, also writes the weights after dropout.
template <class T>
INLINE void collect_support(GradientRow<T> row, Support &support) {
    const double enlarged = row.enlarged;
    support.count = 0, support.has_nan = false;
    for (long i = 0; i < row.n; ++i) {
        const T weight = row.weights[i];
        const bool kept = !row.used || weight > 0;
        if (row.used) row.used[i] = kept ? (T)(weight * enlarged) : (T)0;
        if (weight == 0) continue;
        double v = row.incoming[i];
        if (row.used) v = kept ? v * enlarged : 0;
        support.has_nan |= weight != weight || v != v;
        support.probability[support.count] = weight < 0 ? -weight : weight;
        support.incoming[support.count] = v;
        support.column[support.count++] = (int)i;
    }
    for (long k = support.count; k % DOUBLE_LANES; ++k) {
        support.probability[k] = 1;
        support.incoming[k] = 0;
    }
}

// Computes log s of each entry.
INLINE void compute_log_weights(Support &support, double beta) {
    for (long k = 0; k < support.count; k += DOUBLE_LANES) {
        const Doubles p = support.probabilities_at(k);
        store<double>(support.log_weight + k, logarithm<double>(p, p - 1) * (1 - beta));
    }
    for (long k = support.count; k % DOUBLE_LANES; ++k) support.log_weight[k] = -INFINITY;
}

// The index of the largest s.
INLINE long index_of_largest(const Support &support) {
    double largest = -INFINITY;
    long index = 0;
    for (long k = 0; k < support.count; ++k) {
        if (support.log_weight[k] > largest) {
            largest = support.log_weight[k];
            index = k;
        }
    }
    return index;
}

// m, given the largest log s.
INLINE double mean_incoming(const Support &support, double largest) {
    Doubles total = {}, weighted = {};
    for (long k = 0; k < support.count; k += DOUBLE_LANES) {
        const Doubles share = exponential<double>(support.log_weights_at(k) - largest);
        total += share;
        weighted += share * support.incoming_at(k);
    }
    return sum_of<double>(weighted) / sum_of<double>(total);
}

// ---- the gradients ---------------------------------------------------------------------------

// s of a vector of log s; infinite if it is too large for float64.
INLINE Doubles weights_of(Doubles log_weights) {
    const auto fits = log_weights < LARGEST_EXPONENT;
    const Doubles s = exponential<double>(fits ? log_weights : Doubles{});
    return fits ? s : Doubles{} + INFINITY;
}

// Writes s (v - m), times the scale, at the scores of the support; the rest of `row.gradient` is
// left as it is.
template <class T>
INLINE void write_scores_gradient(GradientRow<T> row, const Support &support, double mean,
                                  long largest) {
    Doubles sum_of_others = {};
    for (long k = 0; k < support.count; k += DOUBLE_LANES) {
        Doubles gradient =
            weights_of(support.log_weights_at(k)) * (support.incoming_at(k) - mean);
        const long lane_of_largest = largest - k;
        if (lane_of_largest >= 0 && lane_of_largest < DOUBLE_LANES) gradient[lane_of_largest] = 0;
        sum_of_others += gradient;
        for (long lane = 0; lane < DOUBLE_LANES && k + lane < support.count; ++lane)
            row.gradient[support.column[k + lane]] = (T)(gradient[lane] * row.scale);
    }
    row.gradient[support.column[largest]] = (T)(-sum_of<double>(sum_of_others) * row.scale);
}

// The gradient with respect to alpha, -sum(p k (v - m)).
INLINE double alpha_gradient(const Support &support, double mean, double beta) {
    Doubles sum = {};
    for (long k = 0; k < support.count; k += DOUBLE_LANES) {
        const Doubles log_weights = support.log_weights_at(k);
        const auto is_padding = log_weights == -INFINITY;
        const Doubles p = is_padding ? Doubles{} : support.probabilities_at(k);
        const Doubles log_p = is_padding ? Doubles{} : log_weights / (1 - beta);
        sum += p * (1 - beta * log_p) * (support.incoming_at(k) - mean);
    }
    return sum_of<double>(sum) / (beta * beta);
}

// Writes the gradient of a row above alpha 2 with respect to its scores. Returns the gradient with
// respect to alpha if it is wanted, else 0. A nan in the support makes all of them nan.
template <class T>
TARGET double gradient_above_two(GradientRow<T> row, double alpha, bool wants_alpha,
                                 Support &support) {
    const double beta = alpha - 1;
    collect_support(row, support);
    for (long i = 0; i < row.n; ++i) row.gradient[i] = support.has_nan ? (T)NAN : (T)0;
    if (support.has_nan) return NAN;
    if (!support.count) return 0;
    compute_log_weights(support, beta);
    const long largest = index_of_largest(support);
    const double mean = mean_incoming(support, support.log_weight[largest]);
    write_scores_gradient(row, support, mean, largest);
    return wants_alpha ? alpha_gradient(support, mean, beta) : 0;
}
