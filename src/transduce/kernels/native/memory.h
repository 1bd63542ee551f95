// A controller with an external memory over whole sequences, forwards and backwards (Graves et al. 2014, section 3).
// `layers/external_memory.py` has the equations, and the same in torch.
//
// Rows of a batch are apart, and threads take a row each. A step keeps what its backward needs in a block of floats; the
// gradients of the weights are left to the caller, as one matrix product over all steps.
//
// Shapes: B rows, T steps, D width of the controller, G = its gates times D, U width of its recurrent input, P parameters
// of all heads, H heads (the R that read first, then the W that write), N slots, M width of a slot, S shifts.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "activation.h"
#include "numbers.h"

namespace transduce {

struct MemorySizes {
    Index controller, slots, width, read, write, reach, lstm;

    Index heads() const { return read + write; }
    Index shifts() const { return 2 * reach + 1; }
    Index gates() const { return (lstm ? 4 : 1) * controller; }
    Index input() const { return read * width + (lstm ? controller : 0); }
    Index memory() const { return slots * width; }
    Index strengths() const { return heads() * width; }  // where each kind of parameter begins
    Index opened() const { return strengths() + 2 * heads(); }
    Index shifted() const { return opened() + heads() + write * width; }
    Index added() const { return shifted() + heads() * shifts(); }
    Index said() const { return added() + write * width; }
    Index kept() const { return gates() + controller + said() + heads() + 4 * heads() * slots + memory(); }
};

// What one step keeps: parameters after their nonlinearities (keys of length 1), and stages of the weightings.
struct MemoryKept {
    float *gates, *cell, *said, *key_length, *cosine, *content, *moved, *logarithm, *memory;

    MemoryKept(float* from, const MemorySizes& sizes) {
        const auto take = [&from](Index count) { return from += count, from - count; };
        const Index all = sizes.heads() * sizes.slots;
        gates = take(sizes.gates());
        cell = take(sizes.controller);
        said = take(sizes.said());
        key_length = take(sizes.heads());
        cosine = take(all);
        content = take(all);
        moved = take(all);
        logarithm = take(all);
        memory = take(sizes.memory());
    }
};

constexpr float TINY_LENGTH = 1e-8f, TINY_WEIGHT = 1e-12f;

inline float hyperbolic_tangent(float x) { return 2 * sigmoid(2 * x) - 1; }

inline float softplus(float x) { return x > 20 ? x : std::log1p(std::exp(x)); }

// y += factor x
inline void add_times(float* y, const float* x, float factor, Index count) {
#pragma omp simd
    for (Index i = 0; i < count; ++i) y[i] += factor * x[i];
}

inline void softmax_in_place(float* x, Index count) {
    float most = x[0], sum = 0;
#pragma omp simd reduction(max : most)
    for (Index i = 0; i < count; ++i) most = x[i] > most ? x[i] : most;
#pragma omp simd reduction(+ : sum)
    for (Index i = 0; i < count; ++i) {
        x[i] = exponential(x[i] - most);
        sum += x[i];
    }
#pragma omp simd
    for (Index i = 0; i < count; ++i) x[i] /= sum;
}

// The gradient of what the softmax was taken of, in the place of the gradient of its result y.
inline void softmax_gradient(float* gradient, const float* y, Index count) {
    const float along = dot(gradient, y, count);
#pragma omp simd
    for (Index i = 0; i < count; ++i) gradient[i] = y[i] * (gradient[i] - along);
}

inline float length_of(const float* x, Index count) { return std::sqrt(dot(x, x, count) + TINY_LENGTH); }

// x around its ends: `reach` more on either side.
inline void ring(const float* x, float* around, Index count, Index reach) {
    const Index first = count - reach % count;
    for (Index i = 0; i < count + 2 * reach; ++i) around[i] = x[(first + i) % count];
}

// gates = given + U u, then the cell: an LSTM with gates i, f, o and candidate g, or tanh.
inline void control(const float* given_G, const float* recurrent_GU, const float* input_U, const float* cell_D,
                    float* hidden_D, MemoryKept& kept, const MemorySizes& sizes) {
    const Index width = sizes.controller, gates = sizes.gates(), inputs = sizes.input();
    float* gate = kept.gates;
    for (Index g = 0; g < gates; ++g) gate[g] = given_G[g] + dot(recurrent_GU + g * inputs, input_U, inputs);
    if (!sizes.lstm) {
#pragma omp simd
        for (Index d = 0; d < width; ++d) hidden_D[d] = gate[d] = hyperbolic_tangent(gate[d]);
        return;
    }
    const Index opened = 3 * width;
#pragma omp simd
    for (Index g = 0; g < opened; ++g) gate[g] = sigmoid(gate[g]);
#pragma omp simd
    for (Index d = 0; d < width; ++d) {
        gate[3 * width + d] = hyperbolic_tangent(gate[3 * width + d]);
        kept.cell[d] = gate[width + d] * cell_D[d] + gate[d] * gate[3 * width + d];
        hidden_D[d] = gate[2 * width + d] * hyperbolic_tangent(kept.cell[d]);
    }
}

// What the heads say, after its nonlinearities.
inline void say(const float* hidden_D, const float* heads_PD, const float* bias_P, MemoryKept& kept,
                const MemorySizes& sizes) {
    const Index parameters = sizes.said(), heads = sizes.heads(), width = sizes.width;
    float* said = kept.said;
    for (Index p = 0; p < parameters; ++p) {
        said[p] = bias_P[p] + dot(heads_PD + p * sizes.controller, hidden_D, sizes.controller);
    }
    for (Index h = 0; h < heads; ++h) {
        kept.key_length[h] = length_of(said + h * width, width);
        for (Index m = 0; m < width; ++m) said[h * width + m] /= kept.key_length[h];
        softmax_in_place(said + sizes.shifted() + h * sizes.shifts(), sizes.shifts());
    }
    for (Index p = sizes.strengths(); p < sizes.opened(); ++p) said[p] = softplus(said[p]);
    for (Index p = sizes.opened(); p < sizes.shifted(); ++p) said[p] = sigmoid(said[p]);
    for (Index p = sizes.added(); p < parameters; ++p) said[p] = hyperbolic_tangent(said[p]);
}

// The weightings of all heads, from those of the step before.
inline void address(const float* before_HN, const float* memory_NM, const float* inverse_N, float* weighting_HN,
                    MemoryKept& kept, const MemorySizes& sizes, float* mixed_N, float* around) {
    const Index heads = sizes.heads(), slots = sizes.slots, width = sizes.width;
    for (Index h = 0; h < heads; ++h) {
        const float *key_M = kept.said + h * width, *shift_S = kept.said + sizes.shifted() + h * sizes.shifts();
        const float strength = kept.said[sizes.strengths() + h];
        const float exponent = kept.said[sizes.strengths() + heads + h] + 1, gate = kept.said[sizes.opened() + h];
        const float* before = before_HN + h * slots;
        float *cosine = kept.cosine + h * slots, *content = kept.content + h * slots;
        float *moved = kept.moved + h * slots, *logarithm = kept.logarithm + h * slots;
        float* weighting = weighting_HN + h * slots;
        for (Index n = 0; n < slots; ++n) {
            cosine[n] = dot(memory_NM + n * width, key_M, width) * inverse_N[n];
            content[n] = cosine[n] * strength;
        }
        softmax_in_place(content, slots);
#pragma omp simd
        for (Index n = 0; n < slots; ++n) mixed_N[n] = before[n] + gate * (content[n] - before[n]);
        ring(mixed_N, around, slots, sizes.reach);
        std::fill(moved, moved + slots, TINY_WEIGHT);
        for (Index s = 0; s < sizes.shifts(); ++s) add_times(moved, around + 2 * sizes.reach - s, shift_S[s], slots);
        for (Index n = 0; n < slots; ++n) logarithm[n] = std::log(moved[n]);
#pragma omp simd
        for (Index n = 0; n < slots; ++n) weighting[n] = logarithm[n] * exponent;
        softmax_in_place(weighting, slots);
    }
}

// Reads, then erases and adds.
inline void transfer(const float* weighting_HN, const float* said_P, float* memory_NM, float* read_RM,
                     const MemorySizes& sizes) {
    const Index slots = sizes.slots, width = sizes.width;
    std::fill(read_RM, read_RM + sizes.read * width, 0.0f);
    for (Index r = 0; r < sizes.read; ++r) {
        for (Index n = 0; n < slots; ++n) {
            add_times(read_RM + r * width, memory_NM + n * width, weighting_HN[r * slots + n], width);
        }
    }
    const float *erase_WM = said_P + sizes.opened() + sizes.heads(), *add_WM = said_P + sizes.added();
    const float* write_WN = weighting_HN + sizes.read * slots;
    for (Index w = 0; w < sizes.write; ++w) {
        for (Index n = 0; n < slots; ++n) {
            const float weight = write_WN[w * slots + n];
            float* slot = memory_NM + n * width;
#pragma omp simd
            for (Index m = 0; m < width; ++m) slot[m] *= 1 - weight * erase_WM[w * width + m];
        }
    }
    for (Index w = 0; w < sizes.write; ++w) {
        for (Index n = 0; n < slots; ++n) {
            add_times(memory_NM + n * width, add_WM + w * width, write_WN[w * slots + n], width);
        }
    }
}

// `memory_BNM` and `cell_BD` hold the state before the first step, and after it that of the last one. With keep = 0,
// `kept` holds one step.
inline void memory_unroll(const float* given_BTG, const float* recurrent_GU, const float* heads_PD, const float* bias_P,
                          const float* weighting_BHN, const float* read_BRM, const float* hidden_BD, float* memory_BNM,
                          float* cell_BD, float* input_BTU, float* hidden_BTD, float* read_BTRM, float* weighting_BTHN,
                          float* kept_BTK, Index keep, Index rows, Index steps, Index controller, Index slots,
                          Index width, Index read, Index write, Index reach, Index lstm) {
    const MemorySizes sizes{controller, slots, width, read, write, reach, lstm};
    const Index weights = sizes.heads() * slots, reads = read * width, kept_steps = keep ? steps : 1;
#pragma omp parallel for schedule(static) if (rows > 1)
    for (Index b = 0; b < rows; ++b) {
        std::vector<float> scratch(3 * slots + 2 * reach);
        float *inverse_N = scratch.data(), *mixed_N = inverse_N + slots, *around = mixed_N + slots;
        float *memory_NM = memory_BNM + b * sizes.memory(), *cell_D = cell_BD + b * controller;
        const float *weighting_HN = weighting_BHN + b * weights, *read_RM = read_BRM + b * reads;
        const float* hidden_D = hidden_BD + b * controller;
        for (Index t = 0; t < steps; ++t) {
            const Index step = b * steps + t;
            MemoryKept kept(kept_BTK + (b * kept_steps + (keep ? t : 0)) * sizes.kept(), sizes);
            float* input_U = input_BTU + step * sizes.input();
            std::copy(read_RM, read_RM + reads, input_U);
            if (lstm) std::copy(hidden_D, hidden_D + controller, input_U + reads);
            float* next_D = hidden_BTD + step * controller;
            control(given_BTG + step * sizes.gates(), recurrent_GU, input_U, cell_D, next_D, kept, sizes);
            if (lstm) std::copy(kept.cell, kept.cell + controller, cell_D);
            say(next_D, heads_PD, bias_P, kept, sizes);
            std::copy(memory_NM, memory_NM + sizes.memory(), kept.memory);
            for (Index n = 0; n < slots; ++n) inverse_N[n] = 1 / length_of(memory_NM + n * width, width);
            float *next_HN = weighting_BTHN + step * weights, *next_RM = read_BTRM + step * reads;
            address(weighting_HN, memory_NM, inverse_N, next_HN, kept, sizes, mixed_N, around);
            transfer(next_HN, kept.said, memory_NM, next_RM, sizes);
            hidden_D = next_D, weighting_HN = next_HN, read_RM = next_RM;
        }
    }
}

// Gradients while the steps are walked back; d_said is of the parameters after, then before, their nonlinearities.
struct MemoryGradient {
    float *memory_NM, *weighting_HN, *read_RM, *hidden_D, *cell_D, *said_P;
};

// Of reading and writing.
inline void transfer_gradient(const MemoryGradient& d, const float* weighting_HN, const MemoryKept& kept,
                              const MemorySizes& sizes, float* stages_WNM) {
    const Index slots = sizes.slots, width = sizes.width, cells = sizes.memory();
    const float *erase_WM = kept.said + sizes.opened() + sizes.heads(), *add_WM = kept.said + sizes.added();
    float *d_erase_WM = d.said_P + sizes.opened() + sizes.heads(), *d_add_WM = d.said_P + sizes.added();
    const float* write_WN = weighting_HN + sizes.read * slots;
    float* d_write_WN = d.weighting_HN + sizes.read * slots;
    std::fill(d_erase_WM, d_erase_WM + sizes.write * width, 0.0f);
    std::fill(d_add_WM, d_add_WM + sizes.write * width, 0.0f);
    for (Index w = 0; w < sizes.write; ++w) {  // the memory before each head erased
        const float* before = w ? stages_WNM + (w - 1) * cells : kept.memory;
        float* stage = stages_WNM + w * cells;
        for (Index n = 0; n < slots; ++n) {
            const float weight = write_WN[w * slots + n];
            const float* slot = before + n * width;
#pragma omp simd
            for (Index m = 0; m < width; ++m) stage[n * width + m] = slot[m] * (1 - weight * erase_WM[w * width + m]);
            d_write_WN[w * slots + n] += dot(add_WM + w * width, d.memory_NM + n * width, width);
            add_times(d_add_WM + w * width, d.memory_NM + n * width, weight, width);
        }
    }
    for (Index w = sizes.write - 1; w >= 0; --w) {
        const float* before = w ? stages_WNM + (w - 1) * cells : kept.memory;
        const float* erase_M = erase_WM + w * width;
        float* d_erase_M = d_erase_WM + w * width;
        for (Index n = 0; n < slots; ++n) {
            const float weight = write_WN[w * slots + n];
            const float* slot = before + n * width;
            float *gradient = d.memory_NM + n * width, along = 0;
#pragma omp simd reduction(+ : along)
            for (Index m = 0; m < width; ++m) {
                const float lost = gradient[m] * slot[m];
                along += lost * erase_M[m];
                d_erase_M[m] -= weight * lost;
                gradient[m] *= 1 - weight * erase_M[m];
            }
            d_write_WN[w * slots + n] -= along;
        }
    }
    for (Index r = 0; r < sizes.read; ++r) {
        const float* d_read_M = d.read_RM + r * width;
        for (Index n = 0; n < slots; ++n) {
            d.weighting_HN[r * slots + n] += dot(d_read_M, kept.memory + n * width, width);
            add_times(d.memory_NM + n * width, d_read_M, weighting_HN[r * slots + n], width);
        }
    }
}

// Of the weightings. d.weighting_HN becomes the gradient of the weightings before.
inline void address_gradient(const MemoryGradient& d, const float* before_HN, const float* weighting_HN,
                             const MemoryKept& kept, const MemorySizes& sizes, float* scratch) {
    const Index heads = sizes.heads(), slots = sizes.slots, width = sizes.width, reach = sizes.reach;
    float *mixed_N = scratch, *d_mixed_N = mixed_N + slots, *inverse_N = d_mixed_N + slots;
    float *around = inverse_N + slots, *unit_NM = around + slots + 2 * reach, *d_unit_NM = unit_NM + sizes.memory();
    for (Index n = 0; n < slots; ++n) {
        inverse_N[n] = 1 / length_of(kept.memory + n * width, width);
        for (Index m = 0; m < width; ++m) unit_NM[n * width + m] = kept.memory[n * width + m] * inverse_N[n];
    }
    std::fill(d_unit_NM, d_unit_NM + sizes.memory(), 0.0f);
    for (Index h = 0; h < heads; ++h) {
        const float *key_M = kept.said + h * width, *shift_S = kept.said + sizes.shifted() + h * sizes.shifts();
        const float strength = kept.said[sizes.strengths() + h];
        const float exponent = kept.said[sizes.strengths() + heads + h] + 1, gate = kept.said[sizes.opened() + h];
        const float *before = before_HN + h * slots, *content = kept.content + h * slots;
        const float *moved = kept.moved + h * slots, *logarithm = kept.logarithm + h * slots;
        float *gradient = d.weighting_HN + h * slots, *d_key_M = d.said_P + h * width;
        softmax_gradient(gradient, weighting_HN + h * slots, slots);
        d.said_P[sizes.strengths() + heads + h] = dot(gradient, logarithm, slots);
#pragma omp simd
        for (Index n = 0; n < slots; ++n) {
            gradient[n] *= exponent / moved[n];
            mixed_N[n] = before[n] + gate * (content[n] - before[n]);
        }
        float* d_shift_S = d.said_P + sizes.shifted() + h * sizes.shifts();
        ring(mixed_N, around, slots, reach);
        for (Index s = 0; s < sizes.shifts(); ++s) d_shift_S[s] = dot(gradient, around + 2 * reach - s, slots);
        softmax_gradient(d_shift_S, shift_S, sizes.shifts());
        ring(gradient, around, slots, reach);
        std::fill(d_mixed_N, d_mixed_N + slots, 0.0f);
        for (Index s = 0; s < sizes.shifts(); ++s) add_times(d_mixed_N, around + s, shift_S[s], slots);
        float d_gate = 0;
#pragma omp simd reduction(+ : d_gate)
        for (Index n = 0; n < slots; ++n) {
            d_gate += d_mixed_N[n] * (content[n] - before[n]);
            gradient[n] = (1 - gate) * d_mixed_N[n];
            d_mixed_N[n] *= gate;
        }
        d.said_P[sizes.opened() + h] = d_gate;
        softmax_gradient(d_mixed_N, content, slots);
        d.said_P[sizes.strengths() + h] = dot(d_mixed_N, kept.cosine + h * slots, slots);
        std::fill(d_key_M, d_key_M + width, 0.0f);
        for (Index n = 0; n < slots; ++n) {
            const float d_cosine = d_mixed_N[n] * strength;
            add_times(d_key_M, unit_NM + n * width, d_cosine, width);
            add_times(d_unit_NM + n * width, key_M, d_cosine, width);
        }
        const float along = dot(d_key_M, key_M, width);
        for (Index m = 0; m < width; ++m) d_key_M[m] = (d_key_M[m] - along * key_M[m]) / kept.key_length[h];
    }
    for (Index n = 0; n < slots; ++n) {
        const float *unit = unit_NM + n * width, *d_unit = d_unit_NM + n * width;
        const float along = dot(unit, d_unit, width);
        add_times(d.memory_NM + n * width, d_unit, inverse_N[n], width);
        add_times(d.memory_NM + n * width, unit, -along * inverse_N[n], width);
    }
}

// Of what the heads say, before its nonlinearities; keys and shifts are there already.
inline void say_gradient(float* d_said_P, const float* said_P, const MemorySizes& sizes) {
    for (Index p = sizes.strengths(); p < sizes.opened(); ++p) d_said_P[p] *= -std::expm1(-said_P[p]);
    for (Index p = sizes.opened(); p < sizes.shifted(); ++p) d_said_P[p] *= said_P[p] * (1 - said_P[p]);
    for (Index p = sizes.added(); p < sizes.said(); ++p) d_said_P[p] *= 1 - said_P[p] * said_P[p];
}

// Of the gates before their nonlinearities. d_cell_D becomes the gradient of the cell before.
inline void control_gradient(const float* d_hidden_D, float* d_cell_D, const float* cell_D, const MemoryKept& kept,
                             float* d_gates_G, const MemorySizes& sizes) {
    const Index width = sizes.controller;
    if (!sizes.lstm) {
#pragma omp simd
        for (Index d = 0; d < width; ++d) d_gates_G[d] = d_hidden_D[d] * (1 - kept.gates[d] * kept.gates[d]);
        return;
    }
    const float *in = kept.gates, *forget = in + width, *out = forget + width, *candidate = out + width;
#pragma omp simd
    for (Index d = 0; d < width; ++d) {
        const float shown = hyperbolic_tangent(kept.cell[d]);
        const float d_cell = d_cell_D[d] + d_hidden_D[d] * out[d] * (1 - shown * shown);
        d_gates_G[d] = d_cell * candidate[d] * in[d] * (1 - in[d]);
        d_gates_G[width + d] = d_cell * cell_D[d] * forget[d] * (1 - forget[d]);
        d_gates_G[2 * width + d] = d_hidden_D[d] * shown * out[d] * (1 - out[d]);
        d_gates_G[3 * width + d] = d_cell * in[d] * (1 - candidate[d] * candidate[d]);
        d_cell_D[d] = d_cell * forget[d];
    }
}

// `d_memory_BNM` and `d_cell_BD` hold the gradients of the last state, and after it those of the first. The kept block of
// each step, `weighting_BHN` and `cell_BD` are of the forward pass.
inline void memory_unroll_gradient(const float* recurrent_GU, const float* heads_PD, const float* weighting_BHN,
                                   const float* cell_BD, const float* weighting_BTHN, float* kept_BTK,
                                   const float* d_hidden_BTD, const float* d_read_BTRM, const float* d_weighting_BTHN,
                                   float* d_memory_BNM, float* d_cell_BD, float* d_weighting_BHN, float* d_read_BRM,
                                   float* d_hidden_BD, float* d_gates_BTG, float* d_said_BTP, Index rows, Index steps,
                                   Index controller, Index slots, Index width, Index read, Index write, Index reach,
                                   Index lstm) {
    const MemorySizes sizes{controller, slots, width, read, write, reach, lstm};
    const Index weights = sizes.heads() * slots, reads = read * width, inputs = sizes.input(), gates = sizes.gates();
#pragma omp parallel for schedule(static) if (rows > 1)
    for (Index b = 0; b < rows; ++b) {
        std::vector<float> scratch(4 * slots + 2 * reach + (2 + write) * sizes.memory() + inputs);
        float *stages_WNM = scratch.data(), *d_input_U = stages_WNM + write * sizes.memory();
        float* more = d_input_U + inputs;
        MemoryGradient d{d_memory_BNM + b * sizes.memory(), d_weighting_BHN + b * weights, d_read_BRM + b * reads,
                         d_hidden_BD + b * controller,      d_cell_BD + b * controller,    nullptr};
        std::fill(d.weighting_HN, d.weighting_HN + weights, 0.0f);
        std::fill(d.read_RM, d.read_RM + reads, 0.0f);
        std::fill(d.hidden_D, d.hidden_D + controller, 0.0f);
        for (Index t = steps - 1; t >= 0; --t) {
            const Index step = b * steps + t;
            const MemoryKept kept(kept_BTK + step * sizes.kept(), sizes);
            const MemoryKept earlier(kept_BTK + (t ? step - 1 : step) * sizes.kept(), sizes);
            const float* weighting_HN = weighting_BTHN + step * weights;
            const float* before_HN = t ? weighting_HN - weights : weighting_BHN + b * weights;
            const float* cell_D = t ? earlier.cell : cell_BD + b * controller;
            d.said_P = d_said_BTP + step * sizes.said();
            add_times(d.weighting_HN, d_weighting_BTHN + step * weights, 1, weights);
            add_times(d.read_RM, d_read_BTRM + step * reads, 1, reads);
            add_times(d.hidden_D, d_hidden_BTD + step * controller, 1, controller);
            transfer_gradient(d, weighting_HN, kept, sizes, stages_WNM);
            address_gradient(d, before_HN, weighting_HN, kept, sizes, more);
            say_gradient(d.said_P, kept.said, sizes);
            for (Index p = 0; p < sizes.said(); ++p) {
                add_times(d.hidden_D, heads_PD + p * controller, d.said_P[p], controller);
            }
            float* d_gates_G = d_gates_BTG + step * gates;
            control_gradient(d.hidden_D, d.cell_D, cell_D, kept, d_gates_G, sizes);
            std::fill(d_input_U, d_input_U + inputs, 0.0f);
            for (Index g = 0; g < gates; ++g) add_times(d_input_U, recurrent_GU + g * inputs, d_gates_G[g], inputs);
            std::copy(d_input_U, d_input_U + reads, d.read_RM);
            if (lstm) std::copy(d_input_U + reads, d_input_U + inputs, d.hidden_D);
            else std::fill(d.hidden_D, d.hidden_D + controller, 0.0f);
        }
    }
}

}  // namespace transduce
