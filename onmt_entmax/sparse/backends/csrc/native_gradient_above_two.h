// The gradient of one row above alpha 2, in the scores and in alpha, under one instruction set: see
// native_instruction_sets.h.
//
// The formulas are those of native_gradient.h, but Jacobian weights s may be huge here. So the
// gradient is computed in float64, and its mean from weights divided by the largest. Gradients in
// the scores add up to 0, so that at the largest s is minus the sum of the others. In the gradient
// in alpha, multiples of s add nothing, which leaves
//
//     p k = -p (1 - beta log p) / beta^2;
//
// see `gradients` of derivatives.py.

// Where exp ends in float64.
const double LARGEST_EXPONENT = 709;

// The support of a row, in whole vectors of 8.
struct Support {
    double *probability, *incoming, *log_weight;
    int *column;
    long count;
    bool has_nan;

    static Support up_to(long n, Memory &memory) {
        const long size = (n + 8) * sizeof(double);  // bytes; the columns need half of them
        Support support = {};
        support.probability = (double *)memory.take(size);
        support.incoming = (double *)memory.take(size);
        support.log_weight = (double *)memory.take(size);
        support.column = (int *)memory.take(size);
        return support;
    }
};

// Collect the support of a row, and write the weights as used, where dropout wants them.
template <class T>
INLINE void collect_support(GradientRow<T> row, Support &support) {
    const double enlarged = row.enlarged;
    support.count = 0, support.has_nan = false;
    for (long i = 0; i < row.n; ++i) {
        const T p = row.weights[i];
        const bool kept = !row.used || p > 0;
        if (row.used) row.used[i] = kept ? (T)(p * enlarged) : (T)0;
        if (p == 0) continue;
        double v = row.incoming[i];
        if (row.used) v = kept ? v * enlarged : 0;
        support.has_nan |= p != p || v != v;
        support.probability[support.count] = p < 0 ? -p : p;
        support.incoming[support.count] = v;
        support.column[support.count++] = (int)i;
    }
    for (long k = support.count; k % 8; ++k) support.probability[k] = 1, support.incoming[k] = 0;
}

// Compute the logarithms of the Jacobian weights s, and return the index of the largest.
INLINE long compute_weights(Support &support, double beta) {
    for (long k = 0; k < support.count; k += 8) {
        const Doubles p = Load<double, double>::from(support.probability + k);
        store<double>(support.log_weight + k, logarithm<double>(p, p - 1) * (1 - beta));
    }
    for (long k = support.count; k % 8; ++k) support.log_weight[k] = -INFINITY;
    double largest = -INFINITY;
    long largest_index = 0;
    for (long k = 0; k < support.count; ++k)
        if (support.log_weight[k] > largest) largest = support.log_weight[largest_index = k];
    return largest_index;
}

// The mean of the incoming gradients, weighted by s.
INLINE double mean_incoming(const Support &support, double largest) {
    Doubles total = {}, weighted = {};
    for (long k = 0; k < support.count; k += 8) {
        const Doubles logs = Load<double, double>::from(support.log_weight + k);
        const Doubles share = exponential<double>(logs - largest);
        total += share;
        weighted += share * Load<double, double>::from(support.incoming + k);
    }
    return sum_of<double>(weighted) / sum_of<double>(total);
}

// Jacobian weights, infinite where float64 ends.
INLINE Doubles weights_of(Doubles logs) {
    const auto fits = logs < LARGEST_EXPONENT;
    const Doubles s = exponential<double>(fits ? logs : Doubles{});
    return fits ? s : Doubles{} + INFINITY;
}

// Write the gradient in the scores; return that in alpha.
template <class T>
TARGET double gradient_above_two(GradientRow<T> row, double beta, Support &support) {
    collect_support(row, support);
    for (long i = 0; i < row.n; ++i) row.gradient[i] = support.has_nan ? (T)NAN : (T)0;
    if (support.has_nan) return NAN;
    if (!support.count) return 0;
    const long largest_index = compute_weights(support, beta);
    const double mean = mean_incoming(support, support.log_weight[largest_index]);
    Doubles in_alpha = {}, sum_of_others = {};
    for (long k = 0; k < support.count; k += 8) {
        const Doubles p = Load<double, double>::from(support.probability + k);
        const Doubles logs = Load<double, double>::from(support.log_weight + k);
        const Doubles v = Load<double, double>::from(support.incoming + k) - mean;
        const auto inside = logs > -INFINITY;  // not padding
        const Doubles log_p = inside ? logs / (1 - beta) : Doubles{};
        in_alpha += (inside ? p : Doubles{}) * (1 - beta * log_p) * v;
        Doubles in_scores = weights_of(logs) * v;
        if (largest_index - k >= 0 && largest_index - k < 8) in_scores[largest_index - k] = 0;
        sum_of_others += in_scores;
        for (long lane = 0; lane < 8 && k + lane < support.count; ++lane)
            row.gradient[support.column[k + lane]] = (T)(in_scores[lane] * row.scale);
    }
    row.gradient[support.column[largest_index]] = (T)(-sum_of<double>(sum_of_others) * row.scale);
    return sum_of<double>(in_alpha) / (beta * beta);
}
