// Label-smoothed cross-entropy of rows of logits and its gradient: each a single pass over what must be read.
//
//     loss_n = lse_n - (1 - e) x_ny - e / V sum_v x_nv,   gradient_nv = g (softmax(x_n)_v - (1 - e) [v = y] - e / V)
//
// Shapes: N rows, V columns. A row whose target is negative has no loss and no gradient. Columns whose logits say never
// have no share of e, and V does not count them.
#pragma once

#include "numbers.h"

namespace transduce {

constexpr float IMPOSSIBLE = -5e8f;  // a logit below this says never, as that of padding with a bias of -1e9

// loss_N and log_mass_N, the rows' log-sum-exp.
template <typename T>
void cross_entropy(const T* logits_NV, const Index* target_N, double* loss_N, float* log_mass_N, Index rows,
                   Index columns, double smoothing) {
#pragma omp parallel for schedule(static)
    for (Index n = 0; n < rows; ++n) {
        const T* row_V = logits_NV + n * columns;
        if (target_N[n] < 0) {
            loss_N[n] = 0;
            log_mass_N[n] = 0;
            continue;
        }
        float greatest = -INFINITY, total = 0, possible = 0;
#pragma omp simd reduction(max : greatest) reduction(+ : total, possible)
        for (Index v = 0; v < columns; ++v) {
            const float x = load(row_V[v]);
            greatest = x > greatest ? x : greatest;
            total += x > IMPOSSIBLE ? x : 0;
            possible += x > IMPOSSIBLE ? 1 : 0;
        }
        float mass = 0;
#pragma omp simd reduction(+ : mass)
        for (Index v = 0; v < columns; ++v) mass += exponential(load(row_V[v]) - greatest);
        const double log_mass = static_cast<double>(greatest) + std::log(static_cast<double>(mass));
        log_mass_N[n] = static_cast<float>(log_mass);
        loss_N[n] = log_mass - (1 - smoothing) * load(row_V[target_N[n]]) - smoothing * total / possible;
    }
}

// gradient_NV may stand where the logits stand.
template <typename T>
void cross_entropy_gradient(const T* logits_NV, const Index* target_N, const float* log_mass_N, T* gradient_NV,
                            Index rows, Index columns, double smoothing, double scale) {
    const float factor = static_cast<float>(scale);
#pragma omp parallel for schedule(static)
    for (Index n = 0; n < rows; ++n) {
        const T* row_V = logits_NV + n * columns;
        T* out_V = gradient_NV + n * columns;
        const Index target = target_N[n];
        if (target < 0) {
            for (Index v = 0; v < columns; ++v) store(out_V[v], 0.0f);
            continue;
        }
        float possible = 0;
#pragma omp simd reduction(+ : possible)
        for (Index v = 0; v < columns; ++v) possible += load(row_V[v]) > IMPOSSIBLE ? 1 : 0;
        const float share = static_cast<float>(scale * smoothing / possible);
        const float log_mass = log_mass_N[n];
        const double right = std::exp(static_cast<double>(load(row_V[target])) - log_mass);
#pragma omp simd
        for (Index v = 0; v < columns; ++v) {
            const float x = load(row_V[v]);
            store(out_V[v], factor * exponential(x - log_mass) - (x > IMPOSSIBLE ? share : 0));
        }
        store(out_V[target], static_cast<float>(scale * (right - (1 - smoothing) - smoothing / possible)));
    }
}

}  // namespace transduce
