// What a feed-forward layer does to its hidden features (`transduce.layers.feedforward`), element by element, in place.
//
// NaN stays NaN.
#pragma once

#include "numbers.h"

namespace transduce {

enum class Activation : Index { identity, relu, gelu, gelu_tanh, swish, squared_relu, sigmoid };

// erf(x), within 4e-7: a quotient of polynomials, as Eigen has it; 1 beyond 4.
inline float error_function(float x) {
    const float clamped = x < -4.0f ? -4.0f : x > 4.0f ? 4.0f : x, square = clamped * clamped;
    float above = -2.72614225801306e-10f;
    above = above * square + 2.77068142495902e-08f;
    above = above * square - 2.10102402082508e-06f;
    above = above * square - 5.69250639462346e-05f;
    above = above * square - 7.34990630326855e-04f;
    above = above * square - 2.95459980854025e-03f;
    above = above * square - 1.60960333262415e-02f;
    float below = -1.45660718464996e-05f;
    below = below * square - 2.13374055278905e-04f;
    below = below * square - 1.68282697438203e-03f;
    below = below * square - 7.37332916720468e-03f;
    below = below * square - 1.42647390514189e-02f;
    return clamped * above / below;
}

// 1 / (1 + e^-x).
inline float sigmoid(float x) {
    const float value = 1 / (1 + exponential(x < -87.0f ? 87.0f : -x));
    return x != x ? x : value;
}

template <typename Function>
inline void each_of(float* x, Index count, Function function) {
#pragma omp simd
    for (Index i = 0; i < count; ++i) x[i] = function(x[i]);
}

inline void activate(float* x, Index count, Activation kind) {
    switch (kind) {
        case Activation::identity:
            return;
        case Activation::relu:
            return each_of(x, count, [](float v) { return v < 0 ? 0.0f : v; });
        case Activation::gelu:
            return each_of(x, count, [](float v) { return 0.5f * v * (1 + error_function(v * 0.70710678f)); });
        case Activation::gelu_tanh:  // (1 + tanh u) / 2 = sigmoid(2 u)
            return each_of(x, count, [](float v) { return v * sigmoid(1.59576912f * (v + 0.044715f * v * v * v)); });
        case Activation::swish:
            return each_of(x, count, [](float v) { return v * sigmoid(v); });
        case Activation::squared_relu:
            return each_of(x, count, [](float v) { return v < 0 ? 0.0f : v * v; });
        case Activation::sigmoid:
            return each_of(x, count, [](float v) { return sigmoid(v); });
    }
}

}  // namespace transduce
