// A step of the decoder's attention and its gradient, compiled once for each instruction set.
//
// For each row: scores of the source positions, entmax, context vector, tanh, dropout. Positions of
// zero weight are skipped in the context vector and in every gradient.

#include "sparse/backends/csrc/native_row.h"

#include "nn/lstm/csrc/native_cells.h"

INLINE float dot(const float *x, const float *y, long n) {
    Floats sum[2] = {};
    long i = 0;
    for (; i + 32 <= n; i += 32) {
        sum[0] += read(x + i, 16) * read(y + i, 16);
        sum[1] += read(x + i + 16, 16) * read(y + i + 16, 16);
    }
    for (; i + 16 <= n; i += 16) sum[0] += read(x + i, 16) * read(y + i, 16);
    if (i < n) sum[1] += read(x + i, n - i) * read(y + i, n - i);
    return (float)sum_of<float>(sum[0] + sum[1]);
}

// The positions of nonzero weight, each with its factor and the gradient of its weight.
struct Support {
    long count, *position;
    float *factor, *grad;

    Support(long n, Memory &memory)
        : count(0),
          position((long *)memory.take(n * sizeof(long))),
          factor((float *)memory.take(n * sizeof(float))),
          grad((float *)memory.take(n * sizeof(float))) {}

    void find(const float *weights, long n) {
        count = 0;
        for (long j = 0; j < n; ++j) {
            position[count] = j;
            factor[count] = weights[j];
            count += weights[j] != 0;
        }
    }
};

// `start` plus the sum of the factors times the bank's rows, from column i on.
INLINE Floats add_context(Floats start, const Support &support, const float *bank, long hidden,
                          long i, long count) {
    for (long k = 0; k < support.count; ++k)
        start += support.factor[k] * read(bank + support.position[k] * hidden + i, count);
    return start;
}

// ---- forward ---------------------------------------------------------------------------------

INLINE void softmax(const float *x, long n, float *out) {
    float most = x[0], sum = 0;
    for (long j = 1; j < n; ++j) most = x[j] > most ? x[j] : most;
    for (long j = 0; j < n; j += 16) {
        const long count = n - j < 16 ? n - j : 16;
        write(out + j, exponential(read(x + j, count) - most), count);
    }
    for (long j = 0; j < n; ++j) sum += out[j];
    for (long j = 0; j < n; ++j) out[j] /= sum;
}

template <class P>
struct ReadoutRow {
    const P *product;
    const float *values, *factors;
    float *attentional, *output;
    P *next;
};

template <class P>
INLINE void readout_part(const ReadoutRow<P> &row, const Support &support, long hidden, long i,
                         long count) {
    const Floats start = read(row.product + i, count);
    const Floats sum = add_context(start, support, row.values, hidden, i, count);
    const Floats attentional = hyperbolic_tangent(sum);
    write(row.attentional + i, attentional, count);
    const Floats output = row.factors ? attentional * read(row.factors + i, count) : attentional;
    if (row.factors) write(row.output + i, output, count);
    if (row.next) write(row.next + i, output, count);
}

template <class P>
TARGET void attend(const AttendPlan &plan, const AttendCall &call, long first, long last) {
    Memory memory;
    const long n = plan.length, hidden = plan.hidden;
    const Curve curve = plan.curve();
    float *scores = (float *)memory.take((n + 16) * sizeof(float));
    const Room<float> room = room_up_to<float>(n, memory);
    Support support(n, memory);
    for (long k = first; k < last; ++k) {
        const long row = call.start + k, real = plan.lengths ? plan.lengths[k] : n;
        const float *query = at<float>(plan.queries, row), *keys = plan.keys + k * n * hidden;
        float *weights = plan.weights + (call.step * plan.batch + k) * n;
        for (long j = 0; j < real; ++j) scores[j] = dot(query, keys + j * hidden, hidden);
        if (plan.alpha == 1)
            softmax(scores, real, weights);
        else
            write_solved(scores, real, solve(scores, real, curve, room), room, curve, weights);
        support.find(weights, real);
        ReadoutRow<P> r;
        r.product = (const P *)call.product + k * hidden;
        r.values = plan.values + k * n * hidden;
        r.factors = at<float>(plan.factors, row);
        r.attentional = at<float>(plan.attentional, row);
        r.output = at<float>(plan.outputs, row);
        r.next = k < call.going_on ? at<P>(plan.fed, call.next + k) : nullptr;
        long i = 0;
        for (; i + 16 <= hidden; i += 16) readout_part(r, support, hidden, i, 16);
        if (i < hidden) readout_part(r, support, hidden, i, hidden - i);
    }
}

// ---- backward --------------------------------------------------------------------------------

template <class P>
struct ReadoutBackRow {
    const float *attentional, *factors;
    const P *fed;
    float *grad;
    P *cast_grad;
};

template <class P>
INLINE void readout_back_part(const ReadoutBackRow<P> &row, long i, long count) {
    const Floats attentional = read(row.attentional + i, count);
    Floats grad = read(row.grad + i, count);
    if (row.fed) grad += read(row.fed + i, count);
    if (row.factors) grad *= read(row.factors + i, count);
    grad *= 1.0f - attentional * attentional;
    write(row.grad + i, grad, count);
    if (row.cast_grad) write(row.cast_grad + i, grad, count);
}

// p ** (2 - alpha): see jacobian_weights in jacobian.py.
INLINE float jacobian_weight(float p, double alpha) {
    if (alpha == 1.5) return sqrtf(p);
    if (alpha == 1) return p;
    return alpha == 2 ? 1.0f : powf(p, (float)(2 - alpha));
}

// As scores_gradient, above alpha 2, where the Jacobian weight of the smallest probability is the
// largest and possibly infinite: see _gradient_above_two in jacobian.py.
INLINE void scores_gradient_above_two(Support &support, const float *grad, const float *values,
                                      const float *grad_weights, long hidden, double alpha) {
    long least = 0;
    for (long k = 1; k < support.count; ++k)
        if (!(support.factor[k] >= support.factor[least])) least = k;
    double along = 0, all = 0, others = 0;
    for (long k = 0; k < support.count; ++k) {
        const long j = support.position[k];
        const double share = pow((double)support.factor[k] / support.factor[least], 2 - alpha);
        support.grad[k] =
            dot(grad, values + j * hidden, hidden) + (grad_weights ? grad_weights[j] : 0.0f);
        along += share * support.grad[k];
        all += share;
    }
    for (long k = 0; k < support.count; ++k) {
        if (k == least) continue;
        const double weight = pow((double)support.factor[k], 2 - alpha);
        const double here = weight * (support.grad[k] - along / all);
        support.factor[k] = (float)here;
        others += here;
    }
    support.factor[least] = (float)-others;
}

// Replaces the probabilities on the support by the gradient in the scores: the Jacobian of
// Proposition 1 in Peters, Niculae and Martins (2019).
INLINE void scores_gradient(Support &support, const float *grad, const float *values,
                            const float *grad_weights, long hidden, double alpha) {
    if (support.count == 1) {  // a probability of 1 is constant; 0 * nan stays nan
        support.factor[0] *= 0;
        return;
    }
    if (alpha > 2)
        return scores_gradient_above_two(support, grad, values, grad_weights, hidden, alpha);
    float along = 0, all = 0;
    for (long k = 0; k < support.count; ++k) {
        const long j = support.position[k];
        const float weight = jacobian_weight(support.factor[k], alpha);
        support.grad[k] =
            dot(grad, values + j * hidden, hidden) + (grad_weights ? grad_weights[j] : 0.0f);
        support.factor[k] = weight;
        along += weight * support.grad[k];
        all += weight;
    }
    const float mean = along / all;
    for (long k = 0; k < support.count; ++k) support.factor[k] *= support.grad[k] - mean;
}

template <class P>
TARGET void attend_backward(const AttendPlan &plan, const AttendBackPlan &back,
                            const AttendBackCall &call, long first, long last) {
    Memory memory;
    const long n = plan.length, hidden = plan.hidden;
    Support support(n, memory);
    for (long k = first; k < last; ++k) {
        const long row = call.start + k, place = (call.step * plan.batch + k) * n;
        ReadoutBackRow<P> r;
        r.attentional = back.attentional + row * hidden;
        r.factors = at<float>(plan.factors, row);
        r.fed = k < call.going_on ? at<P>(call.fed, k) : nullptr;
        r.grad = back.grad + row * hidden;
        r.cast_grad = back.cast_grad ? (P *)back.cast_grad + row * hidden : nullptr;
        long i = 0;
        for (; i + 16 <= hidden; i += 16) readout_back_part(r, i, 16);
        if (i < hidden) readout_back_part(r, i, hidden - i);
        support.find(back.weights + place, plan.lengths ? plan.lengths[k] : n);
        scores_gradient(support, r.grad, plan.values + k * n * hidden,
                        back.grad_weights ? back.grad_weights + place : nullptr, hidden,
                        plan.alpha);
        float *scores = back.grad_scores + place;
        for (long s = 0; s < support.count; ++s) scores[support.position[s]] = support.factor[s];
        const float *keys = plan.keys + k * n * hidden;
        float *query = back.query + k * hidden;
        for (i = 0; i + 16 <= hidden; i += 16)
            write(query + i, add_context(Floats{}, support, keys, hidden, i, 16), 16);
        if (i < hidden)
            write(query + i, add_context(Floats{}, support, keys, hidden, i, hidden - i),
                  hidden - i);
    }
}

template <class P>
TARGET const Kernels *kernels() {
    static const Kernels all = {cell_forward<P>, cell_backward<P>, attend<P>, attend_backward<P>};
    return &all;
}
