// Layer norm over rows, forwards and backwards, read and written once (Ba et al. 2016); and RMS norm, forwards.
//
//     y = h g + b,   h = (x - mean) r,   r = 1 / sqrt(var + eps)
//     dx = r (dy g - mean(dy g) - h mean(dy g h)),   dg = sum_n dy h,   db = sum_n dy
//
//     y = x r g,   r = 1 / sqrt(mean(x^2) + eps)          RMS norm (Zhang and Sennrich 2019)
//
// Shapes: N rows, D features, P partial sums, each over ROWS rows, so that the result does not depend on the threads.
#pragma once

#include "numbers.h"

namespace transduce {

constexpr Index ROWS = 128;

template <typename T>
void layer_norm(const float* x_ND, const float* gain_D, const float* bias_D, T* y_ND, float* mean_N, float* inverse_N,
                Index rows, Index width, double epsilon) {
#pragma omp parallel for schedule(static)
    for (Index n = 0; n < rows; ++n) {
        const float* x = x_ND + n * width;
        T* y = y_ND + n * width;
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (Index d = 0; d < width; ++d) sum += x[d];
        const float mean = sum / width;
        float squares = 0;
#pragma omp simd reduction(+ : squares)
        for (Index d = 0; d < width; ++d) squares += (x[d] - mean) * (x[d] - mean);
        const float inverse = 1 / std::sqrt(squares / width + static_cast<float>(epsilon));
#pragma omp simd
        for (Index d = 0; d < width; ++d) store(y[d], (x[d] - mean) * inverse * gain_D[d] + bias_D[d]);
        mean_N[n] = mean;
        inverse_N[n] = inverse;
    }
}

// RMS norm of one row; y may be x.
inline void rms_norm(const float* x_D, const float* gain_D, float* y_D, Index width, double epsilon) {
    float squares = 0;
#pragma omp simd reduction(+ : squares)
    for (Index d = 0; d < width; ++d) squares += x_D[d] * x_D[d];
    const float inverse = 1 / std::sqrt(squares / width + static_cast<float>(epsilon));
#pragma omp simd
    for (Index d = 0; d < width; ++d) y_D[d] = x_D[d] * inverse * gain_D[d];
}

template <typename T>
void layer_norm_gradient(const T* dy_ND, const float* x_ND, const float* gain_D, const float* mean_N,
                         const float* inverse_N, float* dx_ND, float* dgain_PD, float* dbias_PD, Index rows,
                         Index width) {
    const Index parts = (rows + ROWS - 1) / ROWS;
#pragma omp parallel for schedule(static)
    for (Index part = 0; part < parts; ++part) {
        float* dgain = dgain_PD + part * width;
        float* dbias = dbias_PD + part * width;
        for (Index d = 0; d < width; ++d) dgain[d] = dbias[d] = 0;
        const Index last = (part + 1) * ROWS < rows ? (part + 1) * ROWS : rows;
        for (Index n = part * ROWS; n < last; ++n) {
            const float* x = x_ND + n * width;
            const T* dy = dy_ND + n * width;
            float* dx = dx_ND + n * width;
            const float mean = mean_N[n], inverse = inverse_N[n];
            float sum = 0, along = 0;
#pragma omp simd reduction(+ : sum, along)
            for (Index d = 0; d < width; ++d) {
                const float slope = load(dy[d]), normed = (x[d] - mean) * inverse;
                dgain[d] += slope * normed;
                dbias[d] += slope;
                sum += slope * gain_D[d];
                along += slope * gain_D[d] * normed;
            }
            sum /= width;
            along /= width;
#pragma omp simd
            for (Index d = 0; d < width; ++d) {
                dx[d] = inverse * (load(dy[d]) * gain_D[d] - sum - (x[d] - mean) * inverse * along);
            }
        }
    }
}

}  // namespace transduce
