// The pointer-generator (`transduce.layers.pointer`), which copies words from the source or generates them.
//
//     p(w) = g softmax(logits)_w + (1 - g) sum of alpha_s over the source positions s that hold w
//     g = sigmoid(u [h; c] + b),   c = sum_s alpha_s z_s,   alpha = softmax(q z_s / sqrt(D)),   q = W h + d
//
// Shapes: B sources, N rows, D width, S positions of the longest source, V vocabulary.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "decoder.h"
#include "linear.h"
#include "numbers.h"
#include "top.h"

namespace transduce {

// As `transduce.kernels.native.beam` writes it; query.panels null = the model has none.
struct Pointer {
    Weight query;
    const float *generate, *generate_bias;  // u (2 D) and b
};

// What of each source may be copied: the encoder's states, the ids, and of each the first position that has the same.
struct Copies {
    const float* state_BSD;
    const Index *id_BS, *place_BS;
};

constexpr float LEAST_COPIED = 1e-30f;  // of `layers/pointer.py`

inline double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

// One row of logits becomes log-probabilities. real: the positions that the source has, `count` of them.
inline void with_copies(const Pointer& pointer, const Copies& copies, Index source, Index positions,
                        const std::int32_t* real, Index count, const float* query_D, const float* hidden_D, Index width,
                        float* row_V, Index columns) {
    std::vector<float> alpha(count), context(width), copied(positions);
    const float* states = copies.state_BSD + source * positions * width;
    read_places(query_D, states, width, states, width, real, count, width, alpha.data(), context.data());
    float mass = 0;
    for (Index s = 0; s < count; ++s) mass += alpha[s];
    const double logit = static_cast<double>(pointer.generate_bias[0]) + dot(pointer.generate, hidden_D, width) +
                         dot(pointer.generate + width, context.data(), width);
    const float away = log_sum(row_V, columns) + static_cast<float>(softplus(-logit));
#pragma omp simd
    for (Index v = 0; v < columns; ++v) row_V[v] -= away;
    const Index *id_S = copies.id_BS + source * positions, *place_S = copies.place_BS + source * positions;
    for (Index s = 0; s < count; ++s) copied[place_S[real[s]]] += alpha[s] / mass;
    for (Index s = 0; s < count; ++s) {
        if (place_S[real[s]] != real[s]) continue;
        const double share = std::log(static_cast<double>(std::max(copied[real[s]], LEAST_COPIED))) - softplus(logit);
        float& value = row_V[id_S[real[s]]];
        value += static_cast<float>(softplus(share - static_cast<double>(value)));
    }
}

}  // namespace transduce
