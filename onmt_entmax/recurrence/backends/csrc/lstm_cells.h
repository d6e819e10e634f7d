// The pointwise part of an LSTM step and its gradient, under one instruction set: see
// native_dispatch.h. lstm.cpp has the structs of the arguments; lstm_kernels.h includes
// lstm_vectors.h before. Names of gradients begin with `grad_`.

// The order of the gates in memory. CANDIDATE is not a gate: it is the new content of the cell,
// which the input gate multiplies.
enum Gate { INPUT, FORGET, CANDIDATE, OUTPUT, GATES };

// ---- forward ---------------------------------------------------------------------------------

// Computes `count` columns, from i on, of row k. T is the type of the products.
template <class T>
INLINE void cell_part(const CellForward &call, long k, long i, long count) {
    const long hidden = call.hidden, place = k * hidden + i;
    const T *gates = (const T *)call.gates + GATES * k * hidden + i;
    float *activations = call.activations + GATES * k * hidden + i;
    const float *summand = call.summand.row(k) + i;
    Floats gate[GATES];
    for (int g = 0; g < GATES; ++g) {
        gate[g] = read(gates + g * hidden, count) + read(summand + g * hidden, count);
        gate[g] = g == CANDIDATE ? hyperbolic_tangent(gate[g]) : sigmoid(gate[g]);
        write(activations + g * hidden, gate[g], count);
    }
    const Floats cell =
        gate[FORGET] * read(call.cell + place, count) + gate[INPUT] * gate[CANDIDATE];
    const Floats state = gate[OUTPUT] * hyperbolic_tangent(cell);
    write(call.cell_after + place, cell, count);
    write(call.hidden_after + place, state, count);
    const bool scaled = call.factors != nullptr;
    write(call.output + place, scaled ? state * read(call.factors + place, count) : state, count);
}

template <class T>
INLINE void cell_rows(const CellForward &call, long first, long last) {
    for (long k = first; k < last; ++k) {
        long i = 0;
        for (; i + FLOAT_LANES <= call.hidden; i += FLOAT_LANES)
            cell_part<T>(call, k, i, FLOAT_LANES);
        if (i < call.hidden) cell_part<T>(call, k, i, call.hidden - i);
    }
}

TARGET void cell_forward(const CellForward &call, long first, long last) {
    if (call.is_bfloat16)
        cell_rows<Bfloat16>(call, first, last);
    else
        cell_rows<float>(call, first, last);
}

// ---- backward --------------------------------------------------------------------------------

// Computes `count` columns, from i on, of the gradients of row k. T is the type of `grad_gates`.
template <class T>
INLINE void cell_back_part(const CellBackward &call, long k, long i, long count) {
    const long hidden = call.hidden, place = k * hidden + i;
    Floats grad = read(call.grad_output.row(k) + i, count);
    if (call.factors) grad *= read(call.factors + place, count);
    grad += read(call.grad_hidden.row(k) + i, count);
    Floats gate[GATES], grad_gate[GATES];
    for (int g = 0; g < GATES; ++g)
        gate[g] = read(call.activations + (GATES * k + g) * hidden + i, count);
    const Floats squashed = hyperbolic_tangent(read(call.cell_after + place, count));
    const Floats grad_cell_after = read(call.grad_cell_after.row(k) + i, count) +
                                   grad * gate[OUTPUT] * (1.0f - squashed * squashed);
    grad_gate[INPUT] = grad_cell_after * gate[CANDIDATE] * gate[INPUT] * (1.0f - gate[INPUT]);
    grad_gate[FORGET] = grad_cell_after * read(call.cell + place, count) * gate[FORGET] *
                        (1.0f - gate[FORGET]);
    grad_gate[CANDIDATE] =
        grad_cell_after * gate[INPUT] * (1.0f - gate[CANDIDATE] * gate[CANDIDATE]);
    grad_gate[OUTPUT] = grad * squashed * gate[OUTPUT] * (1.0f - gate[OUTPUT]);
    for (int g = 0; g < GATES; ++g)
        write((T *)call.grad_gates + (GATES * k + g) * hidden + i, grad_gate[g], count);
    write(call.grad_cell + place, grad_cell_after * gate[FORGET], count);
}

template <class T>
INLINE void cell_back_rows(const CellBackward &call, long first, long last) {
    for (long k = first; k < last; ++k) {
        long i = 0;
        for (; i + FLOAT_LANES <= call.hidden; i += FLOAT_LANES)
            cell_back_part<T>(call, k, i, FLOAT_LANES);
        if (i < call.hidden) cell_back_part<T>(call, k, i, call.hidden - i);
    }
}

TARGET void cell_backward(const CellBackward &call, long first, long last) {
    if (call.is_bfloat16)
        cell_back_rows<Bfloat16>(call, first, last);
    else
        cell_back_rows<float>(call, first, last);
}
