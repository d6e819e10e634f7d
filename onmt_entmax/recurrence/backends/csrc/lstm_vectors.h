// Vectors of float32 for LSTMs, under one instruction set: see native_dispatch.h. They are loaded
// from and stored to float32 or bfloat16; and they have the activations of the gates.
//
// lstm_kernels.h includes native_row.h before, and with it native_vectors.h (`Floats`) and
// native_elementary.h (`scaled`).

// ---- loads and stores ------------------------------------------------------------------------

// `read` and `write` take the first `count` numbers of a vector; others are read as 0. Loops call
// them with the constant FLOAT_LANES, for which the compiler emits one instruction; and at the end
// of a row with the count of the numbers that are left.
#if ENTMAX_SET == ENTMAX_AVX512
INLINE Floats read(const float *x, long count) {
    if (count == FLOAT_LANES) return (Floats)_mm512_loadu_ps(x);
    return (Floats)_mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1), x);
}
INLINE void write(float *out, Floats v, long count) {
    if (count == FLOAT_LANES)
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
typedef uint16_t Halfs __attribute__((vector_size(VECTOR_BYTES / 2)));
typedef uint32_t Bits __attribute__((vector_size(VECTOR_BYTES)));

INLINE Floats read(const Bfloat16 *x, long count) {
    Halfs half = {};
    if (count == FLOAT_LANES)
        memcpy(&half, x, sizeof half);
    else
        memcpy(&half, x, count * sizeof *x);
    const Bits bits = __builtin_convertvector(half, Bits) << 16;
    Floats v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

const uint32_t BFLOAT16_NAN = 0x7fc0;

// Rounds to the nearest bfloat16, and in a tie to the even one; nan stays nan.
INLINE void write(Bfloat16 *out, Floats v, long count) {
    Bits bits;
    memcpy(&bits, &v, sizeof bits);
    bits = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const FloatMask real = v == v;
    Bits is_real;
    memcpy(&is_real, &real, sizeof is_real);
    bits = (bits & is_real) | (BFLOAT16_NAN & ~is_real);
    const Halfs half = __builtin_convertvector(bits, Halfs);
    if (count == FLOAT_LANES)
        memcpy(out, &half, sizeof half);
    else
        memcpy(out, &half, count * sizeof *out);
}

// ---- activations -----------------------------------------------------------------------------

// e ** x to nearly full precision, with x clamped to [-87, 88]; nan stays nan. Unlike this,
// `exponential<float>` of native_elementary.h must not get an x whose result is infinite.
INLINE Floats clamped_exponential(Floats x) {
    Floats y = x < -87.0f ? Floats{} - 87.0f : x;
    y = y > 88.0f ? Floats{} + 88.0f : y;
    // y = whole * log 2 + part, with log 2 in two parts, so that the first product is exact. Then
    // the series of e ** part.
    const float round = Format<float>::round;
    const Floats shifted = y * (float)LOG2_E + round, whole = shifted - round;
    const Floats part = (y - whole * 0.693145752f) - whole * 1.42860677e-6f;
    Floats e = Floats{} + 1.0f / 5040;
    for (float term : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f})
        e = e * part + term;
    e = scaled<float>(e, shifted);
    return x == x ? e : x;
}

INLINE Floats sigmoid(Floats x) { return 1.0f / (1.0f + clamped_exponential(-x)); }
INLINE Floats hyperbolic_tangent(Floats x) { return 2.0f * sigmoid(2.0f * x) - 1.0f; }
