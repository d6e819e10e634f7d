// The pointwise cell of an LSTM and its gradient, under one instruction set: see native_common.h.

// ---- vectors of float32 and bfloat16 ---------------------------------------------------------

// Reads or writes the first `count` numbers of a vector; the others are read as 0. A `count` that
// the compiler knows to be all costs one instruction.
#if ENTMAX_SET == ENTMAX_AVX512
INLINE Floats read(const float *x, long count) {
    if (count == 16) return (Floats)_mm512_loadu_ps(x);
    return (Floats)_mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1), x);
}
INLINE void write(float *out, Floats v, long count) {
    if (count == 16)
        _mm512_storeu_ps(out, (__m512)v);
    else
        _mm512_mask_storeu_ps(out, (__mmask16)((1u << count) - 1), (__m512)v);
}
#else
INLINE Floats read(const float *x, long count) {
    Floats v = {};
    memcpy(&v, x, count * sizeof *x);
    return v;
}
INLINE void write(float *out, Floats v, long count) { memcpy(out, &v, count * sizeof *out); }
#endif

// A bfloat16 number is the upper half of a float32.
struct Bfloat16 {
    uint16_t bits;
};
typedef uint16_t Halfs __attribute__((vector_size(32)));
typedef uint32_t Bits __attribute__((vector_size(64)));

INLINE Floats read(const Bfloat16 *x, long count) {
    Halfs half = {};
    if (count == 16)
        memcpy(&half, x, sizeof half);
    else
        memcpy(&half, x, count * sizeof *x);
    const Bits bits = __builtin_convertvector(half, Bits) << 16;
    Floats v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

const uint32_t BFLOAT16_NAN = 0x7fc0;

// Rounds to the nearest, and to the even one of two; nan stays nan.
INLINE void write(Bfloat16 *out, Floats v, long count) {
    Bits bits;
    memcpy(&bits, &v, sizeof bits);
    bits = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const FloatMask real = v == v;
    Bits is_real;
    memcpy(&is_real, &real, sizeof is_real);
    bits = (bits & is_real) | (BFLOAT16_NAN & ~is_real);
    const Halfs half = __builtin_convertvector(bits, Halfs);
    if (count == 16)
        memcpy(out, &half, sizeof half);
    else
        memcpy(out, &half, count * sizeof *out);
}

// ---- activations -----------------------------------------------------------------------------

// e ** x to nearly full precision for any x, where `exponential<float>` of native_elementary.h
// takes only those with a finite result: x is clamped to [-87, 88], nan stays nan.
INLINE Floats exponential(Floats x) {
    Floats y = x < -87.0f ? Floats{} - 87.0f : x;
    y = y > 88.0f ? Floats{} + 88.0f : y;
    // y = whole * log 2 + part. The logarithm is in two parts, so that the first product is exact;
    // then the series of e ** part.
    const float round = Format<float>::round;
    const Floats shifted = y * (float)LOG2_E + round, whole = shifted - round;
    const Floats part = (y - whole * 0.693145752f) - whole * 1.42860677e-6f;
    Floats e = Floats{} + 1.0f / 5040;
    for (float term : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f})
        e = e * part + term;
    e = scaled<float>(e, shifted);
    return x == x ? e : x;
}

INLINE Floats sigmoid(Floats x) { return 1.0f / (1.0f + exponential(-x)); }
INLINE Floats hyperbolic_tangent(Floats x) { return 2.0f * sigmoid(2.0f * x) - 1.0f; }

// ---- forward ---------------------------------------------------------------------------------

// Row k, in columns from i on. T is the type of the products. The gates are in the order input,
// forget, candidate, output.
template <class T>
INLINE void cell_part(const CellForward &call, long k, long i, long count) {
    const long hidden = call.hidden, place = k * hidden + i;
    const T *gates = (const T *)call.gates + 4 * k * hidden + i;
    float *activations = call.activations + 4 * k * hidden + i;
    const float *entering = call.entering.row(k) + i;
    Floats gate[4];
    for (int g = 0; g < 4; ++g) {
        gate[g] = read(gates + g * hidden, count) + read(entering + g * hidden, count);
        gate[g] = g == 2 ? hyperbolic_tangent(gate[g]) : sigmoid(gate[g]);
        write(activations + g * hidden, gate[g], count);
    }
    const Floats cell = gate[1] * read(call.cell + place, count) + gate[0] * gate[2];
    const Floats state = gate[3] * hyperbolic_tangent(cell);
    write(call.cell_after + place, cell, count);
    write(call.hidden_after + place, state, count);
    const bool scaled = call.factors != nullptr;
    write(call.output + place, scaled ? state * read(call.factors + place, count) : state, count);
}

template <class T>
INLINE void cell_rows(const CellForward &call, long first, long last) {
    for (long k = first; k < last; ++k) {
        long i = 0;
        for (; i + 16 <= call.hidden; i += 16) cell_part<T>(call, k, i, 16);
        if (i < call.hidden) cell_part<T>(call, k, i, call.hidden - i);
    }
}

TARGET void cell_forward(const CellForward &call, long first, long last) {
    if (call.half)
        cell_rows<Bfloat16>(call, first, last);
    else
        cell_rows<float>(call, first, last);
}

// ---- backward --------------------------------------------------------------------------------

// The gradients of row k, in columns from i on; `inside` is that in the new cell state.
template <class T>
INLINE void cell_back_part(const CellBackward &call, long k, long i, long count) {
    const long hidden = call.hidden, place = k * hidden + i;
    Floats grad = read(call.grad_output.row(k) + i, count);
    if (call.factors) grad *= read(call.factors + place, count);
    grad += read(call.grad_hidden.row(k) + i, count);
    Floats gate[4], grad_gate[4];
    for (int g = 0; g < 4; ++g) gate[g] = read(call.activations + (4 * k + g) * hidden + i, count);
    const Floats squashed = hyperbolic_tangent(read(call.cell_after + place, count));
    const Floats inside =
        read(call.grad_cell.row(k) + i, count) + grad * gate[3] * (1.0f - squashed * squashed);
    grad_gate[0] = inside * gate[2] * gate[0] * (1.0f - gate[0]);
    grad_gate[1] = inside * read(call.cell + place, count) * gate[1] * (1.0f - gate[1]);
    grad_gate[2] = inside * gate[0] * (1.0f - gate[2] * gate[2]);
    grad_gate[3] = grad * squashed * gate[3] * (1.0f - gate[3]);
    for (int g = 0; g < 4; ++g)
        write((T *)call.grad_gates + (4 * k + g) * hidden + i, grad_gate[g], count);
    write(call.grad_before + place, inside * gate[1], count);
}

template <class T>
INLINE void cell_back_rows(const CellBackward &call, long first, long last) {
    for (long k = first; k < last; ++k) {
        long i = 0;
        for (; i + 16 <= call.hidden; i += 16) cell_back_part<T>(call, k, i, 16);
        if (i < call.hidden) cell_back_part<T>(call, k, i, call.hidden - i);
    }
}

TARGET void cell_backward(const CellBackward &call, long first, long last) {
    if (call.half)
        cell_back_rows<Bfloat16>(call, first, last);
    else
        cell_back_rows<float>(call, first, last);
}
