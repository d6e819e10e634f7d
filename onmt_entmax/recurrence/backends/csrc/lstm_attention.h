// A step of the decoder's attention and its gradient, under one instruction set: see
// native_dispatch.h. lstm.cpp has the structs of the arguments, and includes `Memory`;
// lstm_kernels.h includes lstm_vectors.h before.
//
// For each row, a step computes the scores of the source positions, entmax, the context vector, its
// tanh, and dropout. Positions of zero weight are skipped in the context vector and in every
// gradient.
//
// Softmax and the Jacobian repeat parts of native_attention.h and native_gradient.h in sparse/.
// Those also have dropout of weights and a gradient with respect to alpha, which nothing here
// needs; and the gradient here works on a list of the positions of nonzero weight.

// The dot product of x and y (n,). It adds up two sums in turn, since an addition has to wait for
// the one before it in the same sum.
INLINE float dot(const float *x, const float *y, long n) {
    const long lanes = FLOAT_LANES;
    Floats sum[2] = {};
    long i = 0;
    for (; i + 2 * lanes <= n; i += 2 * lanes) {
        sum[0] += read(x + i, lanes) * read(y + i, lanes);
        sum[1] += read(x + i + lanes, lanes) * read(y + i + lanes, lanes);
    }
    for (; i + lanes <= n; i += lanes) sum[0] += read(x + i, lanes) * read(y + i, lanes);
    if (i < n) sum[1] += read(x + i, n - i) * read(y + i, n - i);
    return (float)sum_of<float>(sum[0] + sum[1]);
}

// The positions of nonzero weight in a row. `add_context` multiplies the vector of each position by
// its coefficient. This is the weight; in the backward pass, `scores_gradient` then replaces it by
// the gradient with respect to the score.
struct ActivePositions {
    long count, *position;  // (count,), ascending
    float *coefficient;     // (count,)
    float *grad_weight;     // (count,), gradients with respect to the weights; only backward

    ActivePositions(long n, Memory &memory)
        : count(0),
          position((long *)memory.take(n * sizeof(long))),
          coefficient((float *)memory.take(n * sizeof(float))),
          grad_weight((float *)memory.take(n * sizeof(float))) {}

    // Lists the positions of nonzero weights (n,), without a branch, which no processor would
    // predict.
    void find(const float *weights, long n) {
        count = 0;
        for (long j = 0; j < n; ++j) {
            position[count] = j;
            coefficient[count] = weights[j];
            count += weights[j] != 0;
        }
    }
};

// Returns `start` plus the sum of the active rows of a bank (n, hidden), each times its
// coefficient, in `count` columns from i on.
INLINE Floats add_context(Floats start, const ActivePositions &active, const float *bank,
                          long hidden, long i, long count) {
    for (long k = 0; k < active.count; ++k)
        start += active.coefficient[k] * read(bank + active.position[k] * hidden + i, count);
    return start;
}

// ---- forward ---------------------------------------------------------------------------------

// Writes softmax of scores (n,) to `out`.
INLINE void softmax(const float *x, long n, float *out) {
    float largest = x[0], sum = 0;
    for (long j = 1; j < n; ++j) largest = x[j] > largest ? x[j] : largest;
    for (long j = 0; j < n; j += FLOAT_LANES) {
        const long count = n - j < FLOAT_LANES ? n - j : FLOAT_LANES;
        write(out + j, clamped_exponential(read(x + j, count) - largest), count);
    }
    for (long j = 0; j < n; ++j) sum += out[j];
    for (long j = 0; j < n; ++j) out[j] /= sum;
}

// Writes entmax of the scores (n,) of a row to `weights`.
INLINE void write_weights(const float *scores, long n, const Curve &curve, Scratch<float> scratch,
                          float *weights) {
    if (curve.alpha == 1) {
        softmax(scores, n, weights);
        return;
    }
    const Solved solved = solve(scores, n, curve, scratch);
    write_solved(scores, n, solved, scratch, curve, weights);
}

// Writes `count` columns, from i on, of the attentional vector of a row; `values` (n, hidden) are
// those of its sentence.
INLINE void write_output_part(const Attend &call, long row, const ActivePositions &active,
                              const float *values, long i, long count) {
    const long place = row * call.hidden + i;
    const Floats projected = call.is_bfloat16
                                 ? read((const Bfloat16 *)call.projected + place, count)
                                 : read((const float *)call.projected + place, count);
    const Floats sum = add_context(projected, active, values, call.hidden, i, count);
    const Floats output = hyperbolic_tangent(sum);
    const bool scaled = call.factors != nullptr;
    write(call.output + place, scaled ? output * read(call.factors + place, count) : output, count);
}

// A step of attention of rows from `first` up to `last`.
TARGET void attend(const Attend &call, long first, long last) {
    Memory memory;
    const Sources &sources = call.sources;
    const long n = sources.length, hidden = call.hidden;
    const Curve curve = Curve::of(sources.alpha);
    float *scores = (float *)memory.take((n + FLOAT_LANES) * sizeof(float));
    const Scratch<float> scratch = Scratch<float>::up_to(n, memory);
    ActivePositions active(n, memory);
    for (long row = first; row < last; ++row) {
        const long sentence = sources.sentence_of(row), real = sources.lengths[sentence];
        const float *keys = sources.keys + sentence * n * hidden;
        const float *values = sources.values + sentence * n * hidden;
        const float *query = call.query + row * hidden;
        float *weights = call.weights + row * n;
        for (long j = 0; j < real; ++j) scores[j] = dot(query, keys + j * hidden, hidden);
        write_weights(scores, real, curve, scratch, weights);
        active.find(weights, real);
        long i = 0;
        for (; i + FLOAT_LANES <= hidden; i += FLOAT_LANES)
            write_output_part(call, row, active, values, i, FLOAT_LANES);
        if (i < hidden) write_output_part(call, row, active, values, i, hidden - i);
    }
}

// ---- backward --------------------------------------------------------------------------------

// Writes `count` columns, from i on, of the gradient of a row with respect to the argument of the
// tanh: in float32 to `grad_row` (hidden,), and if the call takes bfloat16, also rounded to
// `grad_projected`.
INLINE void write_grad_part(const AttendBackward &call, float *grad_row, long row, long i,
                            long count) {
    const long place = row * call.hidden + i;
    Floats grad = read(call.grad_output.row(row) + i, count);
    Floats output = read(call.output + place, count);
    if (call.factors) {  // the output of dropped units does not matter: their gradient is 0
        const Floats factor = read(call.factors + place, count);
        output = factor == 0.0f ? output : output / factor;
        grad *= factor;
    }
    grad *= 1.0f - output * output;
    write(grad_row + i, grad, count);
    if (call.is_bfloat16) write((Bfloat16 *)call.grad_projected + place, grad, count);
}

// The Jacobian weight p ** (2 - alpha) of a probability: see `gradients` in sparse/derivatives.py.
INLINE float jacobian_weight(float p, double alpha) {
    if (alpha == 1.5) return sqrtf(p);
    if (alpha == 1) return p;
    return alpha == 2 ? 1.0f : powf(p, (float)(2 - alpha));
}

// Replaces the weights of active positions by the gradients with respect to their scores, given the
// gradient with respect to the context vector, `grad` (hidden,). The Jacobian is that of
// Proposition 1 in Peters, Niculae and Martins (2019).
INLINE void scores_gradient(ActivePositions &active, const float *grad, const float *values,
                            long hidden, double alpha) {
    if (active.count == 1) {  // a probability of 1 is constant, so its gradient is 0
        active.coefficient[0] *= 0;  // nan stays nan
        return;
    }
    float weighted = 0, total = 0;  // sums of Jacobian weights, with and without the gradients
    for (long k = 0; k < active.count; ++k) {
        const float weight = jacobian_weight(active.coefficient[k], alpha);
        active.grad_weight[k] = dot(grad, values + active.position[k] * hidden, hidden);
        active.coefficient[k] = weight;
        weighted += weight * active.grad_weight[k];
        total += weight;
    }
    const float mean = weighted / total;
    for (long k = 0; k < active.count; ++k) active.coefficient[k] *= active.grad_weight[k] - mean;
}

// Writes the gradient of a query (hidden,) through its scores: the sum of the keys, each times the
// gradient with respect to its score.
INLINE void write_query_gradient(const ActivePositions &active, const float *keys, long hidden,
                                 float *out) {
    long i = 0;
    for (; i + FLOAT_LANES <= hidden; i += FLOAT_LANES)
        write(out + i, add_context(Floats{}, active, keys, hidden, i, FLOAT_LANES), FLOAT_LANES);
    if (i < hidden)
        write(out + i, add_context(Floats{}, active, keys, hidden, i, hidden - i), hidden - i);
}

// The backward pass of `attend`.
TARGET void attend_backward(const AttendBackward &call, long first, long last) {
    Memory memory;
    const Sources &sources = call.sources;
    const long n = sources.length, hidden = call.hidden;
    ActivePositions active(n, memory);
    float *unrounded = call.is_bfloat16 ? (float *)memory.take(hidden * sizeof(float)) : nullptr;
    for (long row = first; row < last; ++row) {
        const long sentence = sources.sentence_of(row);
        const float *keys = sources.keys + sentence * n * hidden;
        const float *values = sources.values + sentence * n * hidden;
        float *grad = call.is_bfloat16 ? unrounded : (float *)call.grad_projected + row * hidden;
        long i = 0;
        for (; i + FLOAT_LANES <= hidden; i += FLOAT_LANES)
            write_grad_part(call, grad, row, i, FLOAT_LANES);
        if (i < hidden) write_grad_part(call, grad, row, i, hidden - i);
        active.find(call.weights + row * n, sources.lengths[sentence]);
        scores_gradient(active, grad, values, hidden, sources.alpha);
        float *grad_scores = call.grad_scores + row * n;
        for (long k = 0; k < active.count; ++k)
            grad_scores[active.position[k]] = active.coefficient[k];
        write_query_gradient(active, keys, hidden, call.grad_query + row * hidden);
    }
}
