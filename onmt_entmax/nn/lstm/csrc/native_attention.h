// A step of attention between the states of a decoder and its outputs, under one instruction set.
//
// Per row: scores of the source positions, entmax of them, their mixture, tanh, dropout; and the
// way back. Positions of zero weight are left out of the mixture and of every gradient.

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

// The positions of nonzero weight, and what each of them is multiplied by.
struct Support {
    long count, *position;
    float *share, *arriving;

    Support(long n, Memory &memory)
        : count(0),
          position((long *)memory.take(n * sizeof(long))),
          share((float *)memory.take(n * sizeof(float))),
          arriving((float *)memory.take(n * sizeof(float))) {}

    void find(const float *weights, long n) {
        count = 0;
        for (long j = 0; j < n; ++j) {
            position[count] = j;
            share[count] = weights[j];
            count += weights[j] != 0;
        }
    }
};

INLINE Floats mixed(Floats start, const Support &support, const float *bank, long hidden, long i,
                    long count) {
    for (long k = 0; k < support.count; ++k)
        start += support.share[k] * read(bank + support.position[k] * hidden + i, count);
    return start;
}

// ---- forth -----------------------------------------------------------------------------------

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
struct OutputRow {
    const P *product;
    const float *values, *factors;
    float *plain, *output;
    P *next;
};

template <class P>
INLINE void output_part(const OutputRow<P> &row, const Support &support, long hidden, long i,
                        long count) {
    const Floats sum = mixed(read(row.product + i, count), support, row.values, hidden, i, count);
    const Floats plain = hyperbolic_tangent(sum);
    write(row.plain + i, plain, count);
    const Floats output = row.factors ? plain * read(row.factors + i, count) : plain;
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
        OutputRow<P> r;
        r.product = (const P *)call.product + k * hidden;
        r.values = plan.values + k * n * hidden;
        r.factors = at<float>(plan.factors, row);
        r.plain = at<float>(plan.plain, row);
        r.output = at<float>(plan.outputs, row);
        r.next = k < call.going_on ? at<P>(plan.fed, call.next + k) : nullptr;
        long i = 0;
        for (; i + 16 <= hidden; i += 16) output_part(r, support, hidden, i, 16);
        if (i < hidden) output_part(r, support, hidden, i, hidden - i);
    }
}

// ---- back ------------------------------------------------------------------------------------

template <class P>
struct InwardRow {
    const float *plain, *factors;
    const P *fed;
    float *grad;
    P *brief;
};

template <class P>
INLINE void inward_part(const InwardRow<P> &row, long i, long count) {
    const Floats plain = read(row.plain + i, count);
    Floats grad = read(row.grad + i, count);
    if (row.fed) grad += read(row.fed + i, count);
    if (row.factors) grad *= read(row.factors + i, count);
    grad *= 1.0f - plain * plain;
    write(row.grad + i, grad, count);
    if (row.brief) write(row.brief + i, grad, count);
}

// p ** (2 - alpha) on the support, see gradient.py.
INLINE float slope_at(float p, double alpha) {
    if (alpha == 1.5) return sqrtf(p);
    if (alpha == 1) return p;
    return alpha == 2 ? 1.0f : powf(p, (float)(2 - alpha));
}

// Above alpha 2, where the smallest weight has nearly all the slope, perhaps an infinite one: see
// _steep_gradient in gradient.py.
INLINE void steep_scores_gradient(Support &support, const float *grad, const float *values,
                                  const float *more, long hidden, double alpha) {
    long least = 0;
    for (long k = 1; k < support.count; ++k)
        if (!(support.share[k] >= support.share[least])) least = k;
    double along = 0, all = 0, others = 0;
    for (long k = 0; k < support.count; ++k) {
        const long j = support.position[k];
        const double share = pow((double)support.share[k] / support.share[least], 2 - alpha);
        support.arriving[k] = dot(grad, values + j * hidden, hidden) + (more ? more[j] : 0.0f);
        along += share * support.arriving[k];
        all += share;
    }
    for (long k = 0; k < support.count; ++k) {
        if (k == least) continue;
        const double slope = pow((double)support.share[k], 2 - alpha);
        const double here = slope * (support.arriving[k] - along / all);
        support.share[k] = (float)here;
        others += here;
    }
    support.share[least] = (float)-others;
}

// The gradient of the scores on the support, in the place of the weights: the Jacobian of
// Proposition 1 in Peters, Niculae and Martins (2019).
INLINE void scores_gradient(Support &support, const float *grad, const float *values,
                            const float *more, long hidden, double alpha) {
    if (support.count == 1) {  // a certain position cannot move
        support.share[0] *= 0;
        return;
    }
    if (alpha > 2) return steep_scores_gradient(support, grad, values, more, hidden, alpha);
    float along = 0, all = 0;
    for (long k = 0; k < support.count; ++k) {
        const long j = support.position[k];
        const float slope = slope_at(support.share[k], alpha);
        support.arriving[k] = dot(grad, values + j * hidden, hidden) + (more ? more[j] : 0.0f);
        support.share[k] = slope;
        along += slope * support.arriving[k];
        all += slope;
    }
    const float mean = along / all;
    for (long k = 0; k < support.count; ++k) support.share[k] *= support.arriving[k] - mean;
}

template <class P>
TARGET void attend_backward(const AttendPlan &plan, const AttendBackPlan &back,
                            const AttendBackCall &call, long first, long last) {
    Memory memory;
    const long n = plan.length, hidden = plan.hidden;
    Support support(n, memory);
    for (long k = first; k < last; ++k) {
        const long row = call.start + k, place = (call.step * plan.batch + k) * n;
        InwardRow<P> r;
        r.plain = back.plain + row * hidden;
        r.factors = at<float>(plan.factors, row);
        r.fed = k < call.going_on ? at<P>(call.fed, k) : nullptr;
        r.grad = back.grad + row * hidden;
        r.brief = back.brief ? (P *)back.brief + row * hidden : nullptr;
        long i = 0;
        for (; i + 16 <= hidden; i += 16) inward_part(r, i, 16);
        if (i < hidden) inward_part(r, i, hidden - i);
        support.find(back.weights + place, plan.lengths ? plan.lengths[k] : n);
        scores_gradient(support, r.grad, plan.values + k * n * hidden,
                        back.more ? back.more + place : nullptr, hidden, plan.alpha);
        float *scores = back.grad_scores + place;
        for (long s = 0; s < support.count; ++s) scores[support.position[s]] = support.share[s];
        const float *keys = plan.keys + k * n * hidden;
        float *query = back.query + k * hidden;
        for (i = 0; i + 16 <= hidden; i += 16)
            write(query + i, mixed(Floats{}, support, keys, hidden, i, 16), 16);
        if (i < hidden)
            write(query + i, mixed(Floats{}, support, keys, hidden, i, hidden - i), hidden - i);
    }
}

template <class P>
TARGET const Kernels *kernels() {
    static const Kernels all = {cell_forward<P>, cell_backward<P>, attend<P>, attend_backward<P>};
    return &all;
}
