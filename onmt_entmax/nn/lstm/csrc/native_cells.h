// The pointwise cell of an LSTM and its gradient, compiled once for each instruction set.
//
// The mathematics is that of lstm_cell in cells.py: the candidate's part of the gates is doubled,
// since its tanh is 2 sigmoid(2x) - 1. One pass computes everything from the product, and writes
// hidden states where later products read them.

typedef uint16_t Bf16;
typedef Bf16 Bf16s __attribute__((vector_size(32)));
typedef unsigned Words __attribute__((vector_size(64)));

// Reads or writes the first `count` numbers of a vector; the others are read as 0. A `count` that
// the compiler knows to be all costs one instruction.
#if ENTMAX_SET == 3
INLINE Floats read(const float *x, long count) {
    if (count == 16) return (Floats)_mm512_loadu_ps(x);
    return (Floats)_mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1), x);
}
INLINE Bf16s read_bf16s(const Bf16 *x, long count) {
    if (count == 16) return (Bf16s)_mm256_loadu_si256((const __m256i *)x);
    return (Bf16s)_mm256_maskz_loadu_epi16((__mmask16)((1u << count) - 1), x);
}
INLINE void write(float *out, Floats v, long count) {
    if (count == 16)
        _mm512_storeu_ps(out, (__m512)v);
    else
        _mm512_mask_storeu_ps(out, (__mmask16)((1u << count) - 1), (__m512)v);
}
INLINE void write_bf16s(Bf16 *out, Bf16s v, long count) {
    if (count == 16)
        _mm256_storeu_si256((__m256i *)out, (__m256i)v);
    else
        _mm256_mask_storeu_epi16(out, (__mmask16)((1u << count) - 1), (__m256i)v);
}
#else
INLINE Floats read(const float *x, long count) {
    Floats v = {};
    memcpy(&v, x, count * sizeof *x);
    return v;
}
INLINE Bf16s read_bf16s(const Bf16 *x, long count) {
    Bf16s v = {};
    memcpy(&v, x, count * sizeof *x);
    return v;
}
INLINE void write(float *out, Floats v, long count) { memcpy(out, &v, count * sizeof *out); }
INLINE void write_bf16s(Bf16 *out, Bf16s v, long count) { memcpy(out, &v, count * sizeof *out); }
#endif

INLINE Floats read(const Bf16 *x, long count) {
    const Words words = __builtin_convertvector(read_bf16s(x, count), Words) << 16;
    Floats v;
    memcpy(&v, &words, sizeof v);
    return v;
}
// Rounds to the nearest, ties to even; nan stays nan.
INLINE void write(Bf16 *out, Floats v, long count) {
    Words words;
    memcpy(&words, &v, sizeof v);
    const Words rounded = (words + 0x7fff + ((words >> 16) & 1)) >> 16;
    words = v == v ? rounded : Words{} + 0x7fc0;
    write_bf16s(out, __builtin_convertvector(words, Bf16s), count);
}

// e ** x to nearly full precision, with x clamped to [-87, 88]; nan stays nan.
INLINE Floats exponential(Floats x) {
    Floats y = x < -87.0f ? Floats{} - 87.0f : x;
    y = y > 88.0f ? Floats{} + 88.0f : y;
    // y = whole * log 2 + part, where adding 1.5 * 2 ** 23 rounds to a whole number.
    const Floats shifted = y * 1.44269504f + 0x1.8p23f, whole = shifted - 0x1.8p23f;
    const Floats part = (y - whole * 0.693145752f) - whole * 1.42860677e-6f;
    Floats e = Floats{} + 1.0f / 5040;
    for (float term : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f})
        e = e * part + term;
    FloatMask power, result;
    memcpy(&power, &shifted, sizeof power);
    memcpy(&result, &e, sizeof e);
    result += power << 23;
    memcpy(&e, &result, sizeof e);
    return x == x ? e : x;
}

INLINE Floats sigmoid(Floats x) { return 1.0f / (1.0f + exponential(-x)); }
INLINE Floats hyperbolic_tangent(Floats x) { return 2.0f * sigmoid(2.0f * x) - 1.0f; }

template <class P>
INLINE P *at(Rows rows, long row) {
    return rows.memory ? (P *)rows.memory + row * rows.stride : nullptr;
}

// ---- forward ---------------------------------------------------------------------------------

// What one row reads and writes; null where there is nothing.
template <class P>
struct CellRow {
    const P *product;
    const float *entering, *cell, *factors;
    float *gates, *squashed, *output, *next_cell;
    P *next, *above;
};

template <class P>
INLINE void cell_part(const CellRow<P> &row, long hidden, long i, long count) {
    Floats gate[4];
    for (int k = 0; k < 4; ++k) {
        const long j = k * hidden + i;
        gate[k] = sigmoid(read(row.product + j, count) + read(row.entering + j, count));
        write(row.gates + j, gate[k], count);
    }
    const Floats candidate = 2.0f * gate[2] - 1.0f;
    const Floats cell = gate[1] * read(row.cell + i, count) + gate[0] * candidate;
    const Floats squashed = hyperbolic_tangent(cell), state = gate[3] * squashed;
    write(row.squashed + i, squashed, count);
    write(row.output + i, state, count);
    write(row.next_cell + i, cell, count);
    if (row.next) write(row.next + i, state, count);
    if (row.above)
        write(row.above + i, row.factors ? state * read(row.factors + i, count) : state, count);
}

template <class P>
TARGET void cell_forward(const CellPlan &plan, const CellCall &call, long first, long last) {
    for (long k = 0; k < call.rows; ++k) {
        const long row = call.start + k, next = call.next + k;
        const bool goes_on = k < call.going_on;
        CellRow<P> r;
        r.product = (const P *)call.product + k * 4 * plan.hidden;
        r.entering = at<float>(plan.entering, row);
        r.cell = at<float>(plan.cells, row);
        r.factors = at<float>(plan.factors, row);
        r.gates = at<float>(plan.gates, row);
        r.squashed = at<float>(plan.squashed, row);
        r.output = at<float>(plan.outputs, row);
        r.above = at<P>(plan.above, row);
        r.next_cell = goes_on ? at<float>(plan.cells, next) : at<float>(plan.last_cell, k);
        r.next = goes_on ? at<P>(plan.states, next) : nullptr;
        long i = first;
        for (; i + 16 <= last; i += 16) cell_part(r, plan.hidden, i, 16);
        if (i < last) cell_part(r, plan.hidden, i, last - i);
        if (!goes_on) memcpy(at<float>(plan.last, k) + first, r.output + first, (last - first) * 4);
    }
}

// ---- backward --------------------------------------------------------------------------------

template <class P>
struct CellBackRow {
    const P *recurrent, *above;
    const float *output, *factors, *gates, *squashed, *cell;
    float *last, *grad_cell, *grad_gates, *bias;
    P *cast_grad_gates;
};

template <class P>
INLINE void cell_back_part(const CellBackRow<P> &row, long hidden, long i, long count) {
    Floats grad = row.recurrent ? read(row.recurrent + i, count) : read(row.last + i, count);
    if (row.output) grad += read(row.output + i, count);
    if (row.above) {
        const Floats above = read(row.above + i, count);
        grad += row.factors ? above * read(row.factors + i, count) : above;
    }
    Floats gate[4], grad_gate[4];
    for (int k = 0; k < 4; ++k) gate[k] = read(row.gates + k * hidden + i, count);
    const Floats squashed = read(row.squashed + i, count);
    const Floats inside =
        read(row.grad_cell + i, count) + grad * gate[3] * (1.0f - squashed * squashed);
    grad_gate[0] = inside * (2.0f * gate[2] - 1.0f);
    grad_gate[1] = inside * read(row.cell + i, count);
    grad_gate[2] = 2.0f * inside * gate[0];
    grad_gate[3] = grad * squashed;
    for (int k = 0; k < 4; ++k) {
        const long j = k * hidden + i;
        grad_gate[k] *= gate[k] * (1.0f - gate[k]);
        if (row.grad_gates) write(row.grad_gates + j, grad_gate[k], count);
        if (row.cast_grad_gates) write(row.cast_grad_gates + j, grad_gate[k], count);
        write(row.bias + j, read(row.bias + j, count) + grad_gate[k], count);
    }
    write(row.grad_cell + i, inside * gate[1], count);
}

template <class P>
TARGET void cell_backward(const CellPlan &plan, const CellBackPlan &back, const CellBackCall &call,
                          long first, long last) {
    for (long k = 0; k < call.rows; ++k) {
        const long row = call.start + k;
        CellBackRow<P> r;
        r.recurrent = k < call.going_on ? at<P>(call.recurrent, k) : nullptr;
        r.above = at<P>(call.above, k);
        r.output = at<float>(call.output, k);
        r.factors = at<float>(plan.factors, row);
        r.gates = at<float>(plan.gates, row);
        r.squashed = at<float>(plan.squashed, row);
        r.cell = at<float>(plan.cells, row);
        r.last = at<float>(back.grad_hidden, k);
        r.grad_cell = at<float>(back.grad_cell, k);
        r.grad_gates = at<float>(back.grad_gates, row);
        r.cast_grad_gates = at<P>(back.cast_grad_gates, row);
        r.bias = back.bias;
        long i = first;
        for (; i + 16 <= last; i += 16) cell_back_part(r, plan.hidden, i, 16);
        if (i < last) cell_back_part(r, plan.hidden, i, last - i);
    }
}
