// Queries or keys turned by their positions' angles (Su et al. 2021, equation 34), pair by pair.
//
//     y_2j = x_2j cos - x_2j+1 sin,   y_2j+1 = x_2j sin + x_2j+1 cos;   back: the other way round
//
// Shapes: B batch, T positions, H heads, E width of a head; turn_TE holds cosine and sine of each pair in turn.
#pragma once

#include "numbers.h"

namespace transduce {

// x and y may be one.
template <typename T>
inline void turn(const T* x_E, const float* turn_E, T* y_E, Index width, float sign) {
#pragma omp simd
    for (Index j = 0; j < width / 2; ++j) {
        const float even = load(x_E[2 * j]), odd = load(x_E[2 * j + 1]);
        const float cosine = turn_E[2 * j], sine = sign * turn_E[2 * j + 1];
        store(y_E[2 * j], even * cosine - odd * sine);
        store(y_E[2 * j + 1], even * sine + odd * cosine);
    }
}

// y_BTHE lies together; x has strides in elements, E side by side. turn_TE begins at the first position.
template <typename T>
void turned(const T* x, Index x_batch, Index x_position, Index x_head, const float* turn_TE, T* y_BTHE, Index batch,
            Index positions, Index heads, Index width, Index back) {
    const float sign = back ? -1.0f : 1.0f;
#pragma omp parallel for schedule(static) collapse(2)
    for (Index b = 0; b < batch; ++b) {
        for (Index t = 0; t < positions; ++t) {
            for (Index h = 0; h < heads; ++h) {
                turn(x + b * x_batch + t * x_position + h * x_head, turn_TE + t * width,
                     y_BTHE + ((b * positions + t) * heads + h) * width, width, sign);
            }
        }
    }
}

}  // namespace transduce
