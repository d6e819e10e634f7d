// The pointwise half of an LSTM cell and of its gradient, under one instruction set.
//
// The mathematics is that of cell.py: the candidate's share of the gates comes doubled, since its
// tanh is 2 sigmoid(2x) - 1. One pass takes a position from the product to everything that is made
// of it, the states going straight to where later products read them.

// Numbers of 16 bits that have the exponent of a float: PyTorch's bfloat16.
typedef uint16_t Brief;
typedef Brief Briefs __attribute__((vector_size(32)));
typedef unsigned Words __attribute__((vector_size(64)));

// The first numbers of a vector, the others zero. Where the count is known to be all, one load.
#if ENTMAX_SET == 3
INLINE Floats read(const float *x, long count) {
    if (count == 16) return (Floats)_mm512_loadu_ps(x);
    return (Floats)_mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1), x);
}
INLINE Briefs read_briefs(const Brief *x, long count) {
    if (count == 16) return (Briefs)_mm256_loadu_si256((const __m256i *)x);
    return (Briefs)_mm256_maskz_loadu_epi16((__mmask16)((1u << count) - 1), x);
}
INLINE void write(float *out, Floats v, long count) {
    if (count == 16)
        _mm512_storeu_ps(out, (__m512)v);
    else
        _mm512_mask_storeu_ps(out, (__mmask16)((1u << count) - 1), (__m512)v);
}
INLINE void write_briefs(Brief *out, Briefs v, long count) {
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
INLINE Briefs read_briefs(const Brief *x, long count) {
    Briefs v = {};
    memcpy(&v, x, count * sizeof *x);
    return v;
}
INLINE void write(float *out, Floats v, long count) { memcpy(out, &v, count * sizeof *out); }
INLINE void write_briefs(Brief *out, Briefs v, long count) { memcpy(out, &v, count * sizeof *out); }
#endif

INLINE Floats read(const Brief *x, long count) {
    const Words words = __builtin_convertvector(read_briefs(x, count), Words) << 16;
    Floats v;
    memcpy(&v, &words, sizeof v);
    return v;
}
// Rounded to the nearest, ties to even; nan stays nan.
INLINE void write(Brief *out, Floats v, long count) {
    Words words;
    memcpy(&words, &v, sizeof v);
    const Words rounded = (words + 0x7fff + ((words >> 16) & 1)) >> 16;
    words = v == v ? rounded : Words{} + 0x7fc0;
    write_briefs(out, __builtin_convertvector(words, Briefs), count);
}

// e ** x to the last places of a float, x between -87 and 88 or taken as that; nan stays nan.
INLINE Floats exponential(Floats x) {
    Floats y = x < -87.0f ? Floats{} - 87.0f : x;
    y = y > 88.0f ? Floats{} + 88.0f : y;
    // y = whole * log 2 + part; adding 1.5 * 2 ** 23 rounds.
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

// ---- forth -----------------------------------------------------------------------------------

// Where one position reads and writes; where it may not, null.
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

// ---- back ------------------------------------------------------------------------------------

template <class P>
struct CellBackRow {
    const P *later, *added;
    const float *arriving, *factors, *gates, *squashed, *cell;
    float *ending, *grad_cell, *grad_gates, *bias;
    P *brief;  // the gradients of the gates for the products, where those are of another type
};

template <class P>
INLINE void cell_back_part(const CellBackRow<P> &row, long hidden, long i, long count) {
    Floats grad = row.later ? read(row.later + i, count) : read(row.ending + i, count);
    if (row.arriving) grad += read(row.arriving + i, count);
    if (row.added) {
        const Floats added = read(row.added + i, count);
        grad += row.factors ? added * read(row.factors + i, count) : added;
    }
    Floats gate[4], slope[4];
    for (int k = 0; k < 4; ++k) gate[k] = read(row.gates + k * hidden + i, count);
    const Floats squashed = read(row.squashed + i, count);
    const Floats inside =
        read(row.grad_cell + i, count) + grad * gate[3] * (1.0f - squashed * squashed);
    slope[0] = inside * (2.0f * gate[2] - 1.0f);
    slope[1] = inside * read(row.cell + i, count);
    slope[2] = 2.0f * inside * gate[0];
    slope[3] = grad * squashed;
    for (int k = 0; k < 4; ++k) {
        const long j = k * hidden + i;
        slope[k] *= gate[k] * (1.0f - gate[k]);
        if (row.grad_gates) write(row.grad_gates + j, slope[k], count);
        if (row.brief) write(row.brief + j, slope[k], count);
        write(row.bias + j, read(row.bias + j, count) + slope[k], count);
    }
    write(row.grad_cell + i, inside * gate[1], count);
}

template <class P>
TARGET void cell_backward(const CellPlan &plan, const CellBackPlan &back, const CellBackCall &call,
                          long first, long last) {
    for (long k = 0; k < call.rows; ++k) {
        const long row = call.start + k;
        CellBackRow<P> r;
        r.later = k < call.going_on ? at<P>(call.later, k) : nullptr;
        r.added = at<P>(call.added, k);
        r.arriving = at<float>(call.arriving, k);
        r.factors = at<float>(plan.factors, row);
        r.gates = at<float>(plan.gates, row);
        r.squashed = at<float>(plan.squashed, row);
        r.cell = at<float>(plan.cells, row);
        r.ending = at<float>(back.grad_hidden, k);
        r.grad_cell = at<float>(back.grad_cell, k);
        r.grad_gates = at<float>(back.grad_gates, row);
        r.brief = at<P>(back.grad_brief, row);
        r.bias = back.bias;
        long i = first;
        for (; i + 16 <= last; i += 16) cell_back_part(r, plan.hidden, i, 16);
        if (i < last) cell_back_part(r, plan.hidden, i, last - i);
    }
}
